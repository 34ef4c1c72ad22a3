"""What the history is made of: immutable files in a folder or an object store, compressed, and written once.

    records/ab/ab12….json.zst             a run record, named by the sha256 of its bytes
    judgements/ab/ab12…-<rules>.json.zst  what was made of it, named by record and rules: nothing is judged twice
    condensed/12/1234….json.zst           a record without its samples, and what was made of it: named in the same way
    events/ef/ef56….json.zst              what was decided of a series, named by the sha256 of its bytes
    sessions/0a/0a78….json.zst            the log of an optimisation session, named by the sha256 of its bytes

`zstd -dc FILE | sha256sum` checks a file by hand. Everything else, the index above all, can be made again from these.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import fsspec
import zstandard
from fsspec.implementations.local import LocalFileSystem

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError, OutputError, first_line

Kind = Literal["records", "judgements", "condensed", "events", "sessions"]
SUFFIX = ".json.zst"
LEVEL = 3
"""Of zstd: level 9 takes seven times as long for 3% less."""


class StoreError(KernelgateError):
    """The store cannot be read, or a file of it is damaged."""


@dataclass(frozen=True)
class Store:
    """A folder of a file system; `url` is how people name it."""

    url: str
    system: fsspec.AbstractFileSystem
    root: str

    @property
    def folder(self) -> Path | None:
        """Where the store is a folder of this machine: that."""
        return Path(self.root) if isinstance(self.system, LocalFileSystem) else None


def at(url: str) -> Store:
    """The store of a folder's path or an object store's URL, such as s3://bucket/history. Nothing is made there yet."""
    try:
        system, root = fsspec.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise StoreError(f"the store {url} cannot be opened: {first_line(error)}") from None
    made = Store(url, system, str(root).rstrip("/"))
    if made.folder and os.path.lexists(made.folder) and not made.folder.is_dir():
        raise StoreError(f"the store {url} is no folder: name one, or remove what is there")
    return made


def name_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def put(store: Store, kind: Kind, name: str, data: bytes) -> None:
    """Keeps the data under its name, all of it or nothing; what is whole is not written again. Raises OutputError."""
    if not is_whole(store, kind, name):
        write(store, kind, name, data)


def is_whole(store: Store, kind: Kind, name: str) -> bool:
    """Whether it is there, and as it was put there."""
    try:
        return get(store, kind, name) is not None
    except StoreError:
        return False


def write(store: Store, kind: Kind, name: str, data: bytes) -> None:
    """As `put`, also in the place of a file that is damaged."""
    path = _path(store, kind, name)
    packed = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress(data)
    with _faults(store, "written", OutputError):
        if store.folder:
            files.write(Path(path), packed)
        else:
            store.system.pipe_file(path, packed)  # object stores show an object once it is whole


def get(store: Store, kind: Kind, name: str) -> bytes | None:
    """The data of this name; None where there is none. Raises StoreError where it is not what was put there."""
    path = _path(store, kind, name)
    try:
        with _faults(store):
            packed = store.system.cat_file(path)
        data = zstandard.ZstdDecompressor().decompress(packed)
    except FileNotFoundError:
        return None
    except zstandard.ZstdError:
        data = None
    if data is None or (kind != "judgements" and name_of(data) != name):
        again = "add the measurement again from where it came, which repairs it"
        raise StoreError(f"{path} is damaged: {'remove it, and decide again' if kind == 'events' else again}")
    return data


def size(store: Store, kind: Kind, name: str) -> int:
    """Bytes that it takes, packed; 0 where there is none."""
    with suppress(FileNotFoundError), _faults(store):
        return int(store.system.size(_path(store, kind, name)) or 0)
    return 0


def remove(store: Store, kind: Kind, name: str) -> None:
    """Removes it where it is there. Raises OutputError."""
    with suppress(FileNotFoundError), _faults(store, "written", OutputError):
        store.system.rm_file(_path(store, kind, name))


def names(store: Store, kind: Kind, beginning: str = "") -> list[str]:
    """Of everything of this kind, of which the name begins so. What a killed writer left half done has none."""
    found: list[str] = []
    folder = f"{store.root}/{kind}/{beginning[:2]}"
    with suppress(FileNotFoundError), _faults(store):
        if store.folder:  # fsspec leaves out folders that cannot be read
            within = [folder] if beginning else [one.path for one in os.scandir(folder) if one.is_dir()]
            found = [file.name for one in within for file in os.scandir(one)]
        else:
            found = [str(path).rpartition("/")[2] for path in store.system.find(folder)]
    return [file.removesuffix(SUFFIX) for file in found if file.startswith(beginning) and file.endswith(SUFFIX)]


@contextmanager
def _faults(store: Store, done: str = "read", error: type[KernelgateError] = StoreError) -> Iterator[None]:
    """What the store says goes wrong, in one form: each has errors of its own. FileNotFoundError is an answer."""
    try:
        yield
    except (FileNotFoundError, KernelgateError):
        raise
    except Exception as fault:
        raise error(f"the store {store.url} cannot be {done}: {first_line(fault)}") from None


def _path(store: Store, kind: Kind, name: str) -> str:
    return f"{store.root}/{kind}/{name[:2]}/{name}{SUFFIX}"
