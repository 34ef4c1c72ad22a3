from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelgate.bench.system import orphans, supervise
from kernelgate.bench.system.supervise import TimeLimits
from kernelgate.bench.system.worker import child_environment
from tests.processes import alive, wait_for

STUBBORN = """
trap '' TERM
(trap '' TERM; echo $BASHPID > grandchild; exec -a stubborn sleep 1000) &
set -m; (trap '' TERM; echo $BASHPID > other_group; exec sleep 1000) &
until [ -s grandchild ] && [ -s other_group ]; do sleep 0.01; done
echo ready
sleep 1000
"""
"""Ignores SIGTERM, and so do a child and one in a process group of its own, as ninja's jobs are."""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., int]:
    def call(script: str, on_line: Callable[[str], None] = str, limits: TimeLimits = supervise.LIMITS) -> int:
        return supervise.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env=os.environ,
            limits=limits,
            on_line=on_line,
            on_silence=lambda seconds: on_line(f"silent {seconds:.1f}"),
        )

    return call


def stubborn(folder: Path) -> list[int]:
    """The processes that STUBBORN has started."""
    return [int((folder / name).read_text(encoding="utf-8")) for name in ("grandchild", "other_group")]


def test_gives_each_line_and_the_exit_code(run: Callable[..., int]) -> None:
    """Whatever it started holds its output on."""
    lines: list[str] = []
    script = "sleep 1000 & echo one; echo two >&2; printf 'three\\xff'; exit 7"
    assert run(script, lines.append, TimeLimits(total_s=20)) == 7
    assert lines == ["one", "two", "three�"]


def test_says_when_nothing_is_heard(run: Callable[..., int]) -> None:
    lines: list[str] = []
    run("echo before; sleep 0.9; echo after", lines.append, TimeLimits(silence_s=0.3, total_s=60))
    before, first, second, *_, after = lines
    assert (before, after) == ("before", "after")
    assert float(first.removeprefix("silent ")) >= 0.3
    assert float(second.removeprefix("silent ")) >= 0.6  # since the last line, not since the last warning


def test_ends_the_whole_session_past_the_limit(
    run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphans, "GRACE_S", 0.2)
    with pytest.raises(TimeoutError, match=r"^last line: ready$"):
        run(STUBBORN, limits=TimeLimits(silence_s=60, total_s=2))
    assert not any(map(alive, stubborn(tmp_path)))


def test_ends_the_session_when_the_caller_fails(
    run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C is such a failure: KeyboardInterrupt rises where the caller happens to be."""
    monkeypatch.setattr(orphans, "GRACE_S", 0.2)

    def interrupted(line: str) -> None:
        raise KeyboardInterrupt(line)

    with pytest.raises(KeyboardInterrupt, match="ready"):
        run(STUBBORN, on_line=interrupted)
    assert not any(map(alive, stubborn(tmp_path)))


def test_a_killed_caller_leaves_nothing_running(tmp_path: Path) -> None:
    """SIGKILL, after which nothing of it can run any more."""
    code = (
        "import os, sys; from pathlib import Path; from kernelgate.bench.system import supervise\n"
        "supervise.run(['bash', '-c', sys.argv[1]], cwd=Path(sys.argv[2]), env=os.environ, limits=supervise.LIMITS,"
        " on_line=lambda line: print(line, flush=True), on_silence=print)"
    )
    command = [sys.executable, "-c", code, STUBBORN, str(tmp_path)]
    with subprocess.Popen(command, env=child_environment(), stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        assert caller.stdout.readline() == "ready\n"
        caller.kill()
    wait_for(lambda: not any(map(alive, stubborn(tmp_path))), what="one of them runs on")


def test_a_line_without_an_end_comes_in_pieces(run: Callable[..., int]) -> None:
    """Rather than all at once, after each piece was copied as often as others followed."""
    lines: list[str] = []
    run("head -c 1000000 /dev/zero | tr '\\0' x; echo; echo after", lines.append)
    assert "".join(lines) == "x" * 1_000_000 + "after"
    assert lines[-1] == "after"
    assert max(map(len, lines)) <= 4 * supervise.MAX_LINE


def test_an_error_ends_what_the_other_calls_have_started(run: Callable[..., int], tmp_path: Path) -> None:
    """So that a head that does not compile is told at once, and an interrupt waits for no compiler."""
    begun = tmp_path / "begun"

    def fails() -> int:
        wait_for(lambda: begun.exists() and bool(begun.read_text()))
        raise ValueError("the head does not compile")

    never: list[str] = []
    calls = [lambda: run("echo $$ > begun; sleep 1000"), fails, lambda: time.sleep(0.3), lambda: never.append("begun")]
    with pytest.raises(ValueError, match="the head does not compile"):
        supervise.side_by_side(calls, 2)
    assert not alive(int(begun.read_text()))
    assert never == []


def test_a_signal_that_another_thread_takes_ends_the_calls_at_once() -> None:
    """As Linux may choose: a command went on compiling for two minutes after SIGTERM."""
    happened: list[str] = []

    def stop(*_: object) -> None:
        happened.append("stopped")
        raise InterruptedError

    def takes_it() -> None:
        time.sleep(0.3)  # until the others wait
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        time.sleep(2)
        happened.append("went on")

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with pytest.raises(InterruptedError):
            supervise.side_by_side([takes_it, lambda: time.sleep(2)], 2)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert happened == ["stopped", "went on"]


# Processes that outlive whoever started them --------------------------------------------------------------------------

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


def test_a_daemon_and_what_it_leaves_are_ended_and_named_and_a_known_child_is_spared(
    known: frozenset[int], tmp_path: Path
) -> None:
    with subprocess.Popen(["sleep", "600"]) as kept:
        try:
            inner = tmp_path / "inner"
            outer = daemon(tmp_path, f'sh -c "sleep 600 & echo \\$! >{inner}; wait"', "sh")
            wait_for(lambda: inner.exists() and bool(inner.read_text().strip()))
            pids = [outer, int(inner.read_text())]
            wait_for(lambda: is_named(pids[1], "sleep"))
            known |= {kept.pid}
            assert all(map(alive, pids))
            assert orphans.end_new_children(known) == ("sh", "sleep")
            assert not any(map(alive, pids))
            assert orphans.end_new_children(known) == ()
            assert kept.poll() is None
        finally:
            kept.kill()
