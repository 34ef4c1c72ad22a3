from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system import lock, supervise
from kernelgate.ci.lab import watching
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import Event
from kernelgate.ci.lab.watching import Watch
from tests.ci.lab import session_events as made

WATCH = Watch("try 1", report_s=0.2, silent_s=60.0, total_s=60.0)
TALKS = "import time\nfor _ in range(8):\n    print('at work')\n    time.sleep(0.1)\n"
HANGS = "import time\ntime.sleep(60)\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "made_up.py"


def test_work_is_reported_and_what_it_prints_is_passed_on(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module.write_text(TALKS)
    done = watching.run("made_up", [], module.parent, replace(WATCH, expected_s=90.0))
    told = capsys.readouterr().err
    assert (done.code, done.why) == (0, "at work")
    assert told.count("  at work") == 8
    assert re.search(r"try 1: \d+ s of about 90 s, at most 60 s", told)


def test_the_wait_for_a_device_is_no_time_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Said by the lock itself: it is neither counted nor does the command's time run out over it."""
    monkeypatch.setattr(lock, "_REMIND_S", 0.3)
    monkeypatch.setattr(lock.tempfile, "gettempdir", lambda: str(tmp_path))
    with lock.device("GPU-1"), pytest.raises(KernelgateError, match="gave up"), lock.device("GPU-1", wait_s=1.0):
        pytest.fail("it was held")
    waiting = capsys.readouterr().err.splitlines()[-1]
    assert lock.waited_s(waiting) is not None
    clock = [0.0]

    def long(*_: object, on_line: Callable[[str], None], on_silence: Callable[[float], None], **__: object) -> int:
        clock[0] = 500.0
        on_line(re.sub(r"\(\d+ s", "(500 s", waiting))
        clock[0] = 530.0
        on_silence(30.0)
        clock[0] = 605.0
        on_line("waited 600 s for GPU-1")
        return 0

    monkeypatch.setattr(supervise, "run", long)
    monkeypatch.setattr(watching.time, "monotonic", lambda: clock[0])
    done = watching.run("made_up", [], tmp_path, WATCH)
    assert (done.code, done.seconds) == (0, 5.0)


def test_the_time_of_the_device_is_that_in_which_it_was_held(module: Path) -> None:
    """By whichever process of the command; what it did before, such as compiling, is none."""
    held = "import subprocess,sys\nsubprocess.run([sys.executable, '-c', sys.argv[1]], check=True)\n"
    module.write_text(held)
    uses = "from kernelgate.bench.system import lock; import time\nwith lock.device('GPU-t'): time.sleep(0.2)"
    used = watching.run("made_up", [uses], module.parent, WATCH)
    unused = watching.run("made_up", ["import time; time.sleep(0.2)"], module.parent, WATCH)
    assert (used.code, unused.code) == (0, 0)
    assert 0.2 <= used.device_s < used.seconds
    assert unused.device_s == 0


def test_a_silent_command_is_ended(module: Path) -> None:
    module.write_text(HANGS)
    done = watching.run("made_up", [], module.parent, replace(WATCH, silent_s=0.4))
    assert done.code is None
    assert re.fullmatch(r"ended: silent for \d+ s; it had printed nothing", done.why)
    assert done.silent_s is not None
    assert done.silent_s >= 0.4


@pytest.mark.parametrize(
    ("silences_s", "why"), [((30.0, 61.0), "silent for 61 s"), ((30.0,), "its 1 minutes were over")]
)
def test_what_a_command_printed_last_is_said_with_why_it_was_ended(
    silences_s: tuple[float, ...], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hung(*_: object, on_line: Callable[[str], None], on_silence: Callable[[float], None], **__: object) -> int:
        on_line("linking")
        on_line("")
        for seconds in silences_s:
            on_silence(seconds)
        raise TimeoutError("last line: linking")

    monkeypatch.setattr(supervise, "run", hung)
    done = watching.run("made_up", [], tmp_path, WATCH)
    assert (done.code, done.why) == (None, f"ended: {why}; last line: linking")


def of(name: str, *events: Event, **fields: object) -> Session:
    return Session(Path(name), (made.opened(name=name, gpu="NVIDIA H200", **fields), *events))


def test_the_same_kernel_on_the_same_device_says_what_to_expect_and_a_script_or_a_document_does_not() -> None:
    new = of("new")
    earlier = of("earlier", made.gate("build", 2, seconds=40.0), made.tried(1, -5, seconds=50.0))
    search = of("search", made.gate("profile", 0, seconds=None), made.tried(1, -5, seconds=1.1))
    told = of("told", made.gate("build", 2, seconds=3600.0), source="recorded")
    other = of("other", made.gate("build", 2, seconds=9.0), card="another")
    strangers = (new, search, told, other)
    for every, build_s, try_s in ((strangers, None, None), ((*strangers, earlier), 40, 50)):
        assert watching.expected_seconds("build", new, every) == build_s
        assert watching.expected_seconds(None, new, every) == try_s
        assert watching.expected_seconds("performance", new, every) is None
