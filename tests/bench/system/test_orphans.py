"""Processes that outlive whoever started them are found, ended and named: real ones."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelgate.bench.system import orphans
from tests.processes import alive, wait_for

DAEMON = "setsid sh -c '{} & echo $! >{}' </dev/null >/dev/null 2>&1"
"""A process in a session of its own, whose parents have ended."""


@pytest.fixture
def known() -> Iterator[frozenset[int]]:
    """What runs before the test."""
    orphans.adopt_orphans()
    before = orphans.children()
    yield before
    orphans.end_new_children(before)


def daemon(folder: Path, command: str, name: str) -> int:
    """Starts it, and waits until it has this name; its number."""
    file = folder / "pid"
    subprocess.run(["sh", "-c", DAEMON.format(command, file)], check=True)
    pid = int(file.read_text())
    wait_for(lambda: not alive(pid) or is_named(pid, name))
    return pid


def is_named(pid: int, name: str) -> bool:
    """Whether it runs that program already."""
    return Path(f"/proc/{pid}/comm").read_text() == f"{name}\n"


def test_a_daemon_is_found_ended_and_named_and_a_known_child_is_spared(known: frozenset[int], tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as kept:
        try:
            known |= {kept.pid}
            pid = daemon(tmp_path, "exec sleep 600", "sleep")
            assert alive(pid)
            assert orphans.children() - known == {pid}
            assert orphans.end_new_children(known) == ("sleep",)
            assert not alive(pid)
            assert orphans.end_new_children(known) == ()
            assert kept.poll() is None
        finally:
            kept.kill()


def test_what_a_daemon_leaves_is_ended_too(known: frozenset[int], tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    outer = daemon(tmp_path, f'sh -c "sleep 600 & echo \\$! >{inner}; wait"', "sh")
    wait_for(lambda: inner.exists() and bool(inner.read_text().strip()))
    pids = [outer, int(inner.read_text())]
    wait_for(lambda: is_named(pids[1], "sleep"))
    assert all(map(alive, pids))
    assert orphans.end_new_children(known) == ("sh", "sleep")
    assert not any(map(alive, pids))
