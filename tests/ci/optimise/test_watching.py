from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kernelgate.ci.optimise import watching
from kernelgate.ci.optimise.watching import Watch

WATCH = Watch("try 1", report_s=0.2, silent_s=1.0, total_s=60.0)
TALKS = "import time\nfor _ in range(8):\n    print('at work')\n    time.sleep(0.1)\n"
HANGS = "import time\nprint('linking', flush=True)\ntime.sleep(60)\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "made_up.py"


def test_work_is_reported_and_what_it_prints_is_passed_on(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module.write_text(TALKS)

    done = watching.run("made_up", [], module.parent, replace(WATCH, expected_s=90.0))

    told = capsys.readouterr().err
    assert (done.code, done.ended, done.last) == (0, None, "at work")
    assert told.count("  at work") == 8
    assert "try 1: 0 s of about 90 s, at most 60 s" in told


def test_a_silent_command_is_ended_with_what_it_printed_last(module: Path) -> None:
    module.write_text(HANGS)

    done = watching.run("made_up", [], module.parent, WATCH)

    assert done.code is None
    assert done.ended == "ended: silent for 1 s; last line: linking"


def test_a_command_that_takes_too_long_is_ended(module: Path) -> None:
    module.write_text(TALKS)

    done = watching.run("made_up", [], module.parent, replace(WATCH, total_s=0.4))

    assert done.ended is not None
    assert done.ended.startswith("ended: its 0.00667 minutes were over; last line: at work")
