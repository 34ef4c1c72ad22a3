"""The whole index as files that other tools read: one JSON object, or a Parquet file for each kind of row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.history.shown import AT_ONCE, EXPORTED, exported

SCHEMA = "kernelgate.history-export/1"
NUMBERS = {"us", "error_pct", "change_pct", "low_pct", "high_pct", "spread_pct", "noise_pct", "gpu_seconds"}
NUMBERS |= {"minutes", "speedup", "speedup_low", "speedup_high", "gain_kept_pct", "usd"}
COUNTS = {"place", "processes", "rounds", "tries", "kept", "blind"}
FLAGS = {"retried"}
"""The columns of a Parquet file that hold no text."""


def as_json(connection: sa.Connection) -> Iterator[str]:
    """One object: `schema`, and a list of flat rows for each of `EXPORTED`, a row a line. In pieces, as it is read."""
    yield json.dumps({"schema": SCHEMA})[:-1]
    for name in EXPORTED:
        yield f',\n"{name}": ['
        for number, row in enumerate(exported(connection, name)):
            yield f"{',' if number else ''}\n{json.dumps(row, ensure_ascii=False)}"
        yield "]"
    yield "}\n"


def as_parquet(connection: sa.Connection, folder: Path) -> tuple[Path, ...]:
    """A file for each of `EXPORTED`. Raises KernelgateError where pyarrow is missing, OutputError."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise KernelgateError(
            "Parquet needs pyarrow: pip install 'kernelgate[parquet]', or use --format json"
        ) from None
    files.try_folder(folder)
    written = []
    for name, asked in EXPORTED.items():
        path, part = folder / f"{name}.parquet", folder / f".{name}.parquet.part"
        names = [column.name for column in asked.selected_columns if column.name != "series_id"]
        schema = pyarrow.schema([(key, _kind(key, pyarrow)) for key in map(_renamed, names)])
        rows = exported(connection, name)
        with parquet.ParquetWriter(part, schema, compression="zstd") as file:
            while batch := list(islice(rows, AT_ONCE)):
                file.write_table(pyarrow.Table.from_pylist(batch, schema=schema))
        part.replace(path)
        written.append(path)
    return tuple(written)


def _renamed(column: str) -> str:
    """As the rows of an export call it, in percent."""
    return {"error": "error_pct", "effect": "change_pct"}.get(column, column)


def _kind(key: str, pyarrow: Any) -> Any:
    if key in NUMBERS:
        return pyarrow.float64()
    if key in COUNTS:
        return pyarrow.int64()
    return pyarrow.bool_() if key in FLAGS else pyarrow.string()
