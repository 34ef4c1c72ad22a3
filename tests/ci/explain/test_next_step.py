from __future__ import annotations

import pytest

from kernelgate.ci import cli
from kernelgate.ci.explain.next_step import decide


@pytest.mark.parametrize(
    ("speedup", "milliseconds", "priority"),
    [
        (0.49, 1.0, "critical"),
        (0.5, 1.0, "high"),
        (0.99, 1.0, "high"),
        (1.0, 1.0, "medium"),
        (1.49, 1.0, "medium"),
        (1.5, 1.0, "success"),
        (3.0, 0.0099, "launch overhead"),
        (0.1, 0.0099, "launch overhead"),
        (0.1, 0.01, "critical"),
    ],
)
def test_priorities(speedup: float, milliseconds: float, priority: str) -> None:
    assert decide(speedup, milliseconds).priority == priority


def test_ends_with_the_next_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["decide", "0.3", "0.321"]) == 0
    assert capsys.readouterr().out == (
        "Critical: 0.3× the reference. Stop, and profile before changing anything.\n"
        "Next: kernelgate profile --base main\n"
    )


@pytest.mark.parametrize("words", [("0", "1"), ("nan", "1"), ("1", "inf"), ("one", "1"), ("1",)])
def test_other_words_are_usage_errors(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["decide", *words]) == 64
    assert "Traceback" not in capsys.readouterr().err
