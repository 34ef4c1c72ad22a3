"""Files that are written once, whole or not at all, and checked when they are read."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest
import zstandard

from kernelgate.bench.core.errors import OutputError
from kernelgate.ci.history import store
from kernelgate.ci.history.store import StoreError

DATA = b'{"schema": "kernelgate.run/2"}'
NAME = store.name_of(DATA)


@pytest.fixture(params=["folder", "object store"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> store.Store:
    fsspec.filesystem("memory").store.clear()
    return store.at(str(tmp_path / "history") if request.param == "folder" else "memory://bucket/history")


def test_what_is_kept_comes_back_and_is_kept_once(kept: store.Store) -> None:
    assert store.get(kept, "records", NAME) is None
    assert list(store.names(kept, "records")) == []
    for _ in range(2):
        store.put(kept, "records", NAME, DATA)
    assert store.get(kept, "records", NAME) == DATA
    assert list(store.names(kept, "records")) == [NAME]
    assert list(store.names(kept, "events")) == []


@pytest.mark.parametrize("fault", ["cut short", "another content", "not compressed", "empty"])
def test_a_damaged_file_is_named_and_never_used(tmp_path: Path, fault: str) -> None:
    kept = store.at(str(tmp_path))
    store.put(kept, "records", NAME, DATA)
    (file,) = tmp_path.rglob("*.json.zst")
    packed = file.read_bytes()
    assert file.relative_to(tmp_path).as_posix() == f"records/{NAME[:2]}/{NAME}.json.zst"
    assert zstandard.ZstdDecompressor().decompress(packed) == DATA, "as by hand"
    (file.parent / ".kernelgate-0123").write_bytes(b"half")
    assert list(store.names(kept, "records")) == [NAME], "what a killed writer left half done is no file of the store"
    other = zstandard.ZstdCompressor().compress(b"{}")
    file.write_bytes({"cut short": packed[:-3], "another content": other, "not compressed": DATA, "empty": b""}[fault])
    with pytest.raises(StoreError, match=rf"{NAME}\.json\.zst is damaged: add the measurement again"):
        store.get(kept, "records", NAME)
    store.write(kept, "records", NAME, DATA)
    assert store.get(kept, "records", NAME) == DATA


def test_a_store_that_cannot_be_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file is no folder"):
        store.put(store.at(str(tmp_path / "file")), "records", NAME, DATA)
    with pytest.raises(StoreError, match=r"the store nosuch://bucket cannot be opened: .*nosuch"):
        store.at("nosuch://bucket")
