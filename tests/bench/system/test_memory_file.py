"""Memory that a child maps by the number that it inherits, and that nobody finds by a name."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys

import pytest

from kernelgate.bench.system import temporary


def test_a_child_sees_what_its_parent_writes() -> None:
    with temporary.memory_file() as fd:
        os.ftruncate(fd, 4096)
        with mmap.mmap(fd, 4096) as mapped:
            mapped[:5] = b"hello"
            code = f"import mmap; m = mmap.mmap({fd}, 4096); print(m[:5].decode()); m[:5] = b'there'"
            said = subprocess.run([sys.executable, "-c", code], pass_fds=(fd,), capture_output=True, text=True)
            assert (said.stdout, said.stderr) == ("hello\n", "")
            assert mapped[:5] == b"there"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
