"""What `kernelgate session …` refuses before it looks at a checkout."""

from __future__ import annotations

import pytest

from kernelgate.ci.commands import cli


@pytest.mark.parametrize(
    ("words", "argument"),
    [(("new", " "), "OBJECTIVE"), (("try", "", "why"), "WHAT"), (("try", "what", "\t"), "WHY"), (("note", ""), "SAID")],
)
def test_what_says_nothing_is_refused(
    words: tuple[str, ...], argument: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["session", *words]) == 64
    assert f"'{argument}': it is empty: say it in a few words" in capsys.readouterr().err
