from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import OutputError, RecordError
from tests.disks import full


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_as_private_as_the_user_wants_it(tmp_path: Path) -> None:
    for mask in (0o077, 0o022, 0):
        before = os.umask(mask)
        try:
            files.write(tmp_path / str(mask), "")
        finally:
            os.umask(before)
        assert (tmp_path / str(mask)).stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_name_of_255_characters_can_be_written(tmp_path: Path) -> None:
    files.write(tmp_path / ("n" * 255), "1")
    assert left(tmp_path) == ["n" * 255]


@pytest.mark.parametrize("do", [lambda path: files.write(path, "new" * 1000), files.try_file], ids=["write", "try"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, do: Callable[[Path], None]) -> None:
    path = tmp_path / "page.html"
    files.write(path, "old")
    with full(100), pytest.raises(OutputError, match=r"page\.html cannot be written: file too large"):
        do(path)
    assert (path.read_text(), left(tmp_path)) == ("old", ["page.html"])
    with full(100), pytest.raises(OutputError):
        do(tmp_path / "other")
    assert left(tmp_path) == ["page.html"]


def test_what_is_tried_is_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    files.write(path, "é")
    files.write(path, "old")
    files.try_file(path)
    files.try_file(tmp_path / "new" / "run.json")
    files.try_folder(tmp_path / "folder")
    assert (path.read_text(), left(tmp_path)) == ("old", ["folder", "new", "run.json"])
    assert left(tmp_path / "new") == left(tmp_path / "folder") == []


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("elsewhere/run.json")
    for text in ("1", "2"):
        files.try_file(tmp_path / "link")
        files.write(tmp_path / "link", text)
        assert (tmp_path / "elsewhere" / "run.json").read_text() == text
    assert (tmp_path / "link").is_symlink()
    assert left(tmp_path / "elsewhere") == ["run.json"]


@pytest.mark.parametrize("kind", ["/dev/full", "a folder", "a circle of links", "below a file", "a folder that is not"])
def test_what_cannot_be_written_is_named(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a circle of links").symlink_to("a circle of links")
    (tmp_path / "file").touch()
    path = {
        "/dev/full": Path("/dev/full"),
        "below a file": tmp_path / "file" / "deeper" / "run.json",
        "a folder that is not": tmp_path / ("no-such-folder" * 20) / "run.json",
    }.get(kind, tmp_path / kind)
    with pytest.raises(OutputError) as raised:
        files.write(path, "1")
    assert str(raised.value).startswith(f"{path} cannot be written: ")
    assert "\n" not in str(raised.value)
    assert left(tmp_path) == ["a circle of links", "a folder", "file"]
    if kind == "below a file":
        assert f"{tmp_path / 'file'} is no folder" in str(raised.value)


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.append((tmp_path / "pipe").read_text()))
    reader.start()
    files.try_file(tmp_path / "pipe")
    files.write(tmp_path / "pipe", "1")
    reader.join()
    assert said == ["1"]


def test_what_a_process_has_open_is_written_into(tmp_path: Path) -> None:
    """Such as /dev/stdout, which leads to a file where the shell redirects it."""
    with (tmp_path / "redirected").open("w") as file:
        open_file = Path(f"/proc/self/fd/{file.fileno()}")
        files.try_file(open_file)
        files.write(open_file, "1")
        assert os.fstat(file.fileno()).st_size == 1
    assert left(tmp_path) == ["redirected"]


def test_a_file_in_memory_is_a_file_as_any_other() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        files.try_file(Path(folder) / "run.json")
        files.write(Path(folder) / "run.json", "1")
        assert left(Path(folder)) == ["run.json"]


def test_what_is_added_is_all_there_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log"
    files.append(path, b"one\n")
    with full(room=6), pytest.raises(OutputError, match="log cannot be written"):
        files.append(path, b"three\n")
    with pytest.raises(RecordError):
        files.append(path, b"unreadable\n", Mock(side_effect=RecordError))
    files.append(path, b"two\n")
    assert path.read_bytes() == b"one\ntwo\n"


def test_who_may_read_a_file_stays_as_it_was(tmp_path: Path) -> None:
    """As of a .gitignore that gets a line more."""
    path = tmp_path / "file"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o750)
    files.write(path, "new")
    assert (path.read_text(encoding="utf-8"), path.stat().st_mode & 0o777) == ("new", 0o750)
