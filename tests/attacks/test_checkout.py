"""What lies in a pull request's checkout and would run if Python looked for it there."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.kernel import cards


def test_a_module_in_the_checkout_stands_in_for_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sitecustomize", "usercustomize", "torch", "json", "pydantic", "kernelgate"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')\n", encoding="utf-8")
    (tmp_path / cards.FOLDER).mkdir(parents=True)
    (tmp_path / cards.FOLDER / "one.py").write_text("no card\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    [mistake] = cards.read(Path(cards.FOLDER)).mistakes
    assert "SyntaxError" in str(mistake)
