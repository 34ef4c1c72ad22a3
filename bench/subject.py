"""What is measured, for whom: the two libraries and the run that they belong to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime

from kernelgate.bench import record
from kernelgate.bench.build.library import Library


def describe(base: Library | None, head: Library, variables: Mapping[str, str] = os.environ) -> record.Subject:
    """The record's subject; the run's numbers where GitHub Actions tells them."""
    return record.Subject(
        repository=variables.get("GITHUB_REPOSITORY"),
        base_sha=base.manifest.sha if base else None,
        head_sha=head.manifest.sha,
        run_id=_number(variables.get("GITHUB_RUN_ID")),
        run_attempt=_number(variables.get("GITHUB_RUN_ATTEMPT")),
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None
