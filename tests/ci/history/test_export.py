"""The whole index for other tools: the same rows as JSON and as Parquet."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.history import database, export, keep
from kernelgate.ci.history.keep import Archive
from kernelgate.ci.history.shown import EXPORTED
from tests.ci.history.entries import H200, an_entry, put
from tests.ci.history.test_keep import EVENT


def exported(archive: Archive) -> dict[str, Any]:
    with database.reading(archive.database) as connection:
        content: dict[str, Any] = json.loads("".join(export.as_json(connection)))
        return content


def test_an_empty_history_is_an_empty_export(archive: Archive) -> None:
    assert exported(archive) == {"schema": export.SCHEMA, **{name: [] for name in EXPORTED}}


def test_rows_name_their_series_and_are_the_same_in_parquet(archive: Archive, tmp_path: Path) -> None:
    put(archive.database, an_entry("a"), an_entry("b", us=103.0, day=2))
    keep.add_event(archive, EVENT)
    content = exported(archive)
    assert [(row["card"], row["gpu"], row["us"]) for row in content["points"]] == [
        ("norm", H200.device.name, 100.0),
        ("norm", H200.device.name, 103.0),
    ]
    assert content["comparisons"][0]["change_pct"] == pytest.approx(2.02, abs=0.01)
    with database.reading(archive.database) as connection:
        export.as_parquet(connection, tmp_path / "out")
    for name in EXPORTED:
        assert parquet.read_table(tmp_path / "out" / f"{name}.parquet").to_pylist() == content[name], name


def test_without_pyarrow_one_sentence_says_what_to_install(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with (
        database.reading(archive.database) as connection,
        pytest.raises(KernelgateError, match=r"pip install 'kernelgate\[parquet\]', or use --format json"),
    ):
        export.as_parquet(connection, tmp_path)
