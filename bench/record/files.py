"""Records as files: read whatever version they have, written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from kernelgate.bench.errors import RecordError
from kernelgate.bench.record import v1
from kernelgate.bench.record.run_record import SCHEMA, RunRecord


class _AnySchema(BaseModel):
    schema_: Annotated[str, Field(alias="schema")] = SCHEMA


def to_json(record: RunRecord) -> str:
    """The record as it is written to disk; `from_json(to_json(r)) == r`."""
    return record.model_dump_json(by_alias=True, exclude_none=True) + "\n"


def from_json(text: str | bytes, name: str = "record") -> RunRecord:
    """The record in `text`, of this schema or the one before. Raises RecordError naming the first faults and where."""
    try:
        if _AnySchema.model_validate_json(text).schema_ == v1.SCHEMA:
            return v1.upgraded(v1.RunV1.model_validate_json(text))
        return RunRecord.model_validate_json(text)
    except ValidationError as error:
        raise RecordError(f"{name} is not a {SCHEMA} record: {_faults(error)}") from None


def read(path: Path) -> RunRecord:
    """The record in a file. Raises RecordError where it cannot be read or does not fit the schema."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from None
    return from_json(text, str(path))


def write(record: RunRecord, path: Path) -> None:
    """Puts the record into place in one step: a reader, or a run that is killed, never leaves half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(to_json(record))
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def json_schema() -> dict[str, Any]:
    """The JSON Schema that docs/run-record.schema.json holds."""
    schema = RunRecord.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": SCHEMA, **schema}


def _faults(error: ValidationError, most: int = 3) -> str:
    faults = error.errors(include_url=False, include_input=False)
    named = [f"{'.'.join(map(str, fault['loc'])) or 'the file'}: {fault['msg']}" for fault in faults[:most]]
    rest = f"; and {len(faults) - most} more" if len(faults) > most else ""
    return "; ".join(named) + rest
