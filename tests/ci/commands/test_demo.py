"""`kernelgate demo` outside of a clone; tests/demo/test_demo.py runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.ci.commands import cli, setup
from tests.called import EndsWith
from tests.miniature import write


def test_it_ends_as_the_demo_does_and_without_a_clone_says_where_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    assert "clone it, run `make env` there, then `make demo`" in ends_with(64, "demo").err
    for code in (0, 11):
        write(tmp_path, {"tests/__init__.py": "", "tests/demo/__main__.py": f"raise SystemExit({code})"})
        assert cli.run(["demo"]) == code
