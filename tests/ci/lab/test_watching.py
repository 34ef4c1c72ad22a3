from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kernelgate.bench.system import supervise
from kernelgate.ci.lab import watching
from kernelgate.ci.lab.watching import Watch

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
