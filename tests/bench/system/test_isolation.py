"""What a process that loads a pull request's code is shown on a runner, and what becomes of it where bwrap is absent.

The tests with bubblewrap itself are in tests/attacks/test_native.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system import isolation
from kernelgate.bench.system.isolation import NONE, Isolation
from kernelgate.bench.system.worker import WorkerError, WorkerProcess
from tests.bench.system.test_worker import PATIENCE_S, Word
from tests.processes import program

ROOT = Path(__file__).parents[3]
RUNNER = {"GITHUB_ACTIONS": "true"}
Install = Callable[[str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a bwrap in front of PATH, with this body; "$@" is the command that it is to isolate."""

    def put(body: str) -> None:
        script = f'while [ "$1" != -- ]; do shift; done; shift\n{body}'
        bwrap = program(tmp_path / "bin" / "bwrap", script, "/bin/bash")
        monkeypatch.setenv("PATH", f"{bwrap.parent}:{os.environ['PATH']}")

    return put


def test_a_runner_with_bubblewrap_isolates_and_a_machine_of_ones_own_does_not(install: Install) -> None:
    install('exec "$@"')
    assert isolation.of({}) == NONE
    assert NONE.around(["ls", "-l"]) == ["ls", "-l"]
    found = isolation.of(RUNNER)
    assert found.words[0] == "bwrap"
    assert found.writing(Path("/out")).around(["ls"])[-5:] == ["--bind", Path("/out"), Path("/out"), "--", "ls"]
    assert "apart from the runner" in found.said
    assert isolation.of({**RUNNER, isolation.FORK: "true"}) == found


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (None, "bubblewrap is not installed"),
        ("echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1", "setting up uid map: Permission denied"),
        ("exit 3", "it exits with 3"),
    ],
    ids=["absent", "no user namespaces", "broken"],
)
def test_a_runner_that_cannot_isolate_measures_and_says_why(
    body: str | None, says: str, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if body is None:
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        install(body)
    found = isolation.of(RUNNER)
    assert found.words == ()
    assert found.said.startswith("kernels ran with the runner's own rights, and could write this record: ")
    assert says in found.said
    with pytest.raises(KernelgateError, match=f"^a fork's pull request is measured only where .*{re.escape(says)}"):
        isolation.of({**RUNNER, isolation.FORK: "true"})


def test_a_bwrap_that_hangs_is_given_up(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install("exec sleep 600")
    monkeypatch.setattr(isolation, "PROBE_S", 0.2)
    assert "does not run" in isolation.of(RUNNER).said


@pytest.mark.parametrize(("temporary", "hidden"), [("/home/runner/work/_temp", "/home/runner"), ("/__w/_temp", "/__w")])
def test_the_runners_folder_is_found(temporary: str, hidden: str) -> None:
    assert isolation.runner_folder({"RUNNER_TEMP": temporary}) == Path(hidden)


def test_the_signal_that_ends_an_isolated_process_is_named(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bwrap exits with 128 and its number."""
    install('"$@"; exit $?')
    (tmp_path / "script.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    apart = Isolation(("bwrap",), "")
    with WorkerProcess("script:run", (), apart) as script, pytest.raises(WorkerError, match="was killed by SIGSEGV"):
        script.receive(Word, PATIENCE_S)
