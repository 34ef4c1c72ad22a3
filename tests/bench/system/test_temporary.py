"""Temporary folders that a killed process leaves behind, and memory without a name: between real processes."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelgate.bench.system import lock, worker
from kernelgate.bench.system.worker import child_environment

PREFIX = "kernelgate-tried-"
HOLDING = (
    "from kernelgate.bench.system import lock\n"
    f"with lock.temporary_folder({PREFIX!r}) as folder:\n"
    "    (folder / 'file').write_text('x'); print(folder, flush=True); input()"
)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def test_it_is_removed_with_what_is_in_it(tmp_path: Path) -> None:
    with lock.temporary_folder(PREFIX) as folder:
        assert folder.parent == tmp_path
        (folder / "file").write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_what_a_living_process_has_stays_and_what_a_killed_one_had_goes() -> None:
    command = [sys.executable, "-c", HOLDING]
    with subprocess.Popen(
        command, env=child_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        held = Path(other.stdout.readline().strip())
        with lock.temporary_folder(PREFIX):
            assert (held / "file").exists()
        other.kill()
        other.wait()
        assert (held / "file").exists()
    with lock.temporary_folder(PREFIX):
        assert not held.exists()


def test_what_is_not_of_this_kind_stays(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "other")
    (tmp_path / f"{PREFIX}file").write_text("x")
    with lock.temporary_folder(PREFIX):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"other", f"{PREFIX}link", f"{PREFIX}file"}


def test_a_child_sees_what_its_parent_writes() -> None:
    with worker.memory_file() as fd:
        os.ftruncate(fd, 4096)
        with mmap.mmap(fd, 4096) as mapped:
            mapped[:5] = b"hello"
            code = f"import mmap; m = mmap.mmap({fd}, 4096); print(m[:5].decode()); m[:5] = b'there'"
            said = subprocess.run([sys.executable, "-c", code], pass_fds=(fd,), capture_output=True, text=True)
            assert (said.stdout, said.stderr) == ("hello\n", "")
            assert mapped[:5] == b"there"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
