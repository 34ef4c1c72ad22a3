"""Which measurement this is: the two libraries and the run that they belong to."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime

from kernelgate.bench import record
from kernelgate.bench.build.library import Library
from kernelgate.bench.system import environment

PRODUCER = "kernelgate"


def describe(base: Library | None, head: Library, variables: Mapping[str, str] = os.environ) -> record.Run:
    """The identity of a measurement; the run's numbers where GitHub Actions gives them."""
    return record.Run(
        id=secrets.token_hex(8),
        producer=PRODUCER,
        version=environment.package_version(PRODUCER),
        event=variables.get("GITHUB_EVENT_NAME"),
        repository=variables.get("GITHUB_REPOSITORY"),
        pull_request=_number(_pull_ref(variables.get("GITHUB_REF"))),
        base_sha=base.manifest.sha if base else None,
        head_sha=head.manifest.sha,
        run_id=_number(variables.get("GITHUB_RUN_ID")),
        run_attempt=_number(variables.get("GITHUB_RUN_ATTEMPT")),
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _pull_ref(ref: str | None) -> str | None:
    """ "refs/pull/12/merge" -> "12"; None for a branch or a tag."""
    found = re.fullmatch(r"refs/pull/(\d+)/(?:merge|head)", ref or "")
    return found[1] if found else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None
