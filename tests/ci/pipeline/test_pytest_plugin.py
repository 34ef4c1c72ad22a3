"""The fixture `kernelgate_compare`, as a project's own test uses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.ci.pipeline.pytest_plugin import Compare, kernelgate_compare
from tests import miniature
from tests.bench.machine import CPU
from tests.miniature import SCALE, SCALE_CARD

CARD = SCALE_CARD.replace("cases = [", "cpu_cases = [")


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Of a repository whose working tree is as its one commit."""
    files = {"csrc/scale.cpp": SCALE, ".ci/kernels/scale.py": CARD}
    repo = miniature.repository(tmp_path / "clone", files)
    monkeypatch.setattr("kernelgate.bench.system.environment.describe", lambda *_: CPU)

    class Config:
        rootpath = repo

    made: Compare = kernelgate_compare.__wrapped__(Config, tmp_path / "out")  # type: ignore[attr-defined]
    return made


@pytest.mark.slow
def test_a_wrong_kernel_fails_the_test_and_the_same_one_passes_it(compare: Compare, tmp_path: Path) -> None:
    compare("HEAD")
    wrong = SCALE.replace("factor * static_cast", "1.5 * factor * static_cast")
    miniature.write(tmp_path / "clone", {"csrc/scale.cpp": wrong})
    with pytest.raises(pytest.fail.Exception, match="wrong result in"):
        compare("HEAD")


def test_what_does_not_compile_fails_the_test(compare: Compare, tmp_path: Path) -> None:
    miniature.write(tmp_path / "clone", {"csrc/scale.cpp": "int broken = missing;\n"})
    with pytest.raises(pytest.fail.Exception, match="does not compile"):
        compare("HEAD")


def test_a_base_that_is_not_there_fails_and_no_card_skips(compare: Compare, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(pytest.skip.Exception, match="holds no card"):
        compare("HEAD", cards=tmp_path / "none")
    with pytest.raises(pytest.fail.Exception, match="no-such"):
        compare("no-such")
