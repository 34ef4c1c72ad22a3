"""What a verb leaves: tried before it does what takes long, and written whole or not at all."""

from __future__ import annotations

import codecs
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from kernelgate.bench.core.errors import OutputError

CARDS = ".ci/kernels"
"""The folder of a repository's cards, from its root."""
ROOM = 1 << 20
"""Bytes that are tried for: as much as most records take."""
PACKERS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz", b"BZh": "bzip2"}
PACKED = {
    **{begins: f"packed with {tool}: unpack it with `{tool} -d`" for begins, tool in PACKERS.items()},
    b"PK\x03\x04": "packed as zip: unpack it with `unzip`",
    b"version https://git-lfs": "a pointer of git LFS: fetch what it stands for with `git lfs pull`",
    codecs.BOM_UTF32_LE: "UTF-32: make it UTF-8 with `iconv -f UTF-32 -t UTF-8`",  # which begins as UTF-16 does
    codecs.BOM_UTF16_LE: "UTF-16: make it UTF-8 with `iconv -f UTF-16 -t UTF-8`",
    codecs.BOM_UTF16_BE: "UTF-16: make it UTF-8 with `iconv -f UTF-16 -t UTF-8`",
}
"""What a file begins with that holds no text of ours as it is."""
LARGEST = 1 << 28
"""Bytes of a file that is read: far more than any of ours has."""


def content(path: Path) -> bytes:
    """What a user's file holds, without an editor's mark before the first character. Raises OSError as `reading` does,
    for what has no end, such as /dev/zero, and for what is packed."""
    with reading(path) as file:
        held = file.read(LARGEST + 1)
    if len(held) > LARGEST:
        raise OSError(errno.EFBIG, f"it has no end, or more than {LARGEST >> 20} MiB")
    for begins, said in PACKED.items():
        if held.startswith(begins):
            raise OSError(errno.EINVAL, f"it is {said}")
    return held.removeprefix(codecs.BOM_UTF8)


def reading(path: Path) -> IO[bytes]:
    """A user's file, opened to be read. Raises OSError with words in `strerror`, also for a device or a pipe with a
    name of its own, which may wait for a writer for ever; what the shell opened, such as /dev/stdin, is read."""
    if path.is_fifo() and not _of_process(path):
        raise OSError(errno.EINVAL, "it is a named pipe; redirect it, and name /dev/stdin")
    if path.is_char_device() and path.absolute().parts[1:3] not in (("dev", "stdin"), ("dev", "fd"), ("proc", "self")):
        raise OSError(errno.EINVAL, "it is a device")
    return path.open("rb")


def try_file(path: Path) -> None:
    """Raises OutputError where `path` could not be written now. Its folder is made; the file itself is left alone."""
    with _refusing(path):
        if not _in_place(path):
            target = path.resolve()  # of a link what it leads to, so that the link stays one
            if target.is_dir():
                raise IsADirectoryError("it is a folder")
            _beside(target, bytes(ROOM)).unlink()
        elif path.is_dir() or not os.access(path, os.W_OK):
            raise PermissionError("it is a folder" if path.is_dir() else "it may not be written to")


def try_folder(path: Path) -> None:
    """Makes a folder. Raises OutputError where no file could be written into it now."""
    with _refusing(path):
        _beside(path / "any", bytes(ROOM)).unlink()


def write(path: Path, content: str | bytes) -> None:
    """Puts the file into place in one step: neither a full disk nor a run that is killed leaves half a file.

    What is no regular file, such as /dev/stdout, is written to as it is. Raises OutputError.
    """
    data = content.encode() if isinstance(content, str) else content
    with _refusing(path):
        if _in_place(path):
            path.write_bytes(data)
            return
        target = path.resolve()  # of a link what it leads to, so that the link stays one
        part = _beside(target, data)
        try:
            if target.exists():
                part.chmod(target.stat().st_mode)
            part.replace(target)
        except OSError:
            part.unlink()
            raise


def write_each(contents: Mapping[Path, str | bytes]) -> None:
    """Writes each of these files, whatever becomes of the others. Raises OutputError for the first that failed."""
    failed: OutputError | None = None
    for path, content in contents.items():
        try:
            write(path, content)
        except OutputError as error:
            failed = failed or error
    if failed:
        raise failed


def append(path: Path, data: bytes, read: Callable[[bytes], object] = bytes) -> None:
    """Adds to the end of a file: all of it or nothing, whoever else writes. What was written is read again, by `read`:
    a KernelgateError of that leaves the file as it was. Raises OutputError."""
    with _refusing(path), os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+b", 0) as file:
        if not file.seekable():
            file.write(data)
            return
        fcntl.flock(file, fcntl.LOCK_EX)
        size = file.seek(0, os.SEEK_END)
        try:
            if file.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file)
            read(os.pread(file.fileno(), len(data), size))
        except BaseException:
            with suppress(OSError):  # a device has no size
                file.truncate(size)
            raise


def _in_place(path: Path) -> bool:
    """Whether a new file must not take its place: a device, a pipe, or what a process has open."""
    if _of_process(path):
        return True
    try:
        return stat.S_IFMT(path.stat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR)
    except FileNotFoundError:
        return False


def _of_process(path: Path) -> bool:
    return path.absolute().parts[1:2] in (("dev",), ("proc",)) and path.absolute().parts[2:3] != ("shm",)


def _beside(target: Path, data: bytes) -> Path:
    """A file of another name in the target's folder, on the disk when this returns; none where that fails."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".kernelgate-{secrets.token_hex(6)}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return part


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError) as error:
        blocking = next((one for one in path.absolute().parents if os.path.lexists(one) and not one.is_dir()), None)
        why = f"{blocking} is no folder" if blocking else getattr(error, "strerror", None) or str(error)
        why = "it is no folder" if isinstance(error, FileExistsError) else why
        said = f"{path} cannot be written: {why[:1].lower()}{why[1:]}"
        raise OutputError(f"{said}; name another place, or make room there") from None
