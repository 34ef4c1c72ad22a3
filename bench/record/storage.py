"""Records as files: written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import RecordError, faults
from kernelgate.bench.record.run_record import SCHEMA, RunRecord


def to_json(record: RunRecord) -> str:
    """The record as it is written to disk; `from_json(to_json(r)) == r`."""
    return record.model_dump_json(by_alias=True, exclude_none=True) + "\n"


def from_json(text: str | bytes, name: str = "record") -> RunRecord:
    """The record in `text`. Raises RecordError naming the first faults and where."""
    try:
        return RunRecord.model_validate_json(text)
    except ValidationError as error:
        raise RecordError(f"{name} is not a {SCHEMA} record: {faults(error)}") from None


def read(path: Path) -> RunRecord:
    """The record in a file. Raises RecordError where it cannot be read or does not fit the schema."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from None
    return from_json(text, str(path))


def write(record: RunRecord, path: Path) -> None:
    """Puts the record into place in one step. Raises OutputError where it cannot be written."""
    files.write(path, to_json(record))


def json_schema() -> dict[str, Any]:
    """The JSON Schema that docs/run-record.schema.json holds."""
    schema = RunRecord.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": SCHEMA, **schema}
