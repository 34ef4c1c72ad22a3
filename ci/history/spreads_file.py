"""The file of spreads that the judge once kept beside the baselines, `.ci/spreads.json`, as an entry of the history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from kernelgate.bench.core.errors import RecordError, faults
from kernelgate.bench.record import Run
from kernelgate.ci.history.entry import Entry, SpreadEntry, moment
from kernelgate.ci.policy.bounds import PolicySection

SCHEMA: Literal["kernelgate.spreads/1"] = "kernelgate.spreads/1"


class _SpreadsFile(PolicySection):
    schema_: Literal["kernelgate.spreads/1"]
    spreads: tuple[SpreadEntry, ...]


def is_one(text: str) -> bool:
    """Whether the file says that it holds spreads."""
    return f'"{SCHEMA}"' in text[:1000]


def entry(text: str, path: Path) -> Entry:
    """What the file knows, dated by the last comparison in it. Raises RecordError where it does not hold spreads."""
    try:
        content = json.loads(text)
        found = _SpreadsFile.model_validate({("schema_" if key == "schema" else key): content[key] for key in content})
    except ValidationError as error:
        raise RecordError(f"{path} does not hold spreads: {faults(error)}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise RecordError(f"{path} does not hold spreads: {error}") from None
    seen = [moment(one.known.last_seen) or "" for one in found.spreads]
    return Entry(name="", run=Run(producer=SCHEMA, created_at=max(seen, default="") or None), spreads=found.spreads)
