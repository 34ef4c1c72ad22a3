"""`kernelgate cards`: what the cards of a repository say, and whether they are right. Real compilers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernelgate.bench.measure import list_cards
from kernelgate.ci.commands import cli
from tests.ci.answered import validated
from tests.miniature import SCALE_FILES, repository

pytestmark = pytest.mark.usefixtures("cards_in_forks")

CARD = ".ci/kernels/scale.py"
RIGHT = SCALE_FILES[CARD].replace(
    "    def inputs", "    cpu_cases = [dict(N=8, dtype='fp32')]\n    fuzz = dict(N=range(1, 9))\n\n    def inputs"
)
RIGHT += "\n    def flops(self, case):\n        return case.N\n"


Cards = Callable[..., tuple[int, str]]


@pytest.fixture
def cards(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cards:
    """The exit code, and what was said, of a repository with this card, in a folder of it and with an empty cache."""

    def run(card: str, *words: str) -> tuple[int, str]:
        repo = repository(tmp_path / "repo", {**SCALE_FILES, CARD: card} if card else {"README.md": ""})
        (repo / "csrc").mkdir(exist_ok=True)
        monkeypatch.chdir(repo / "csrc")
        code = cli.run(["cards", *words])
        said = capsys.readouterr().out
        assert not ("--list" in words and cache.exists()), "listing compiles nothing"
        return code, said

    return run


@pytest.mark.slow
def test_a_right_card(cards: Cards) -> None:
    code, said = cards(RIGHT)
    assert said.splitlines() == [
        f"scale (Scale), {CARD}",
        "  build: Extension, csrc/scale*",
        "  pr: n64_fp32",
        "  cpu: n8_fp32",
        "  fuzz: 32 configurations on a GPU, 32 configurations on a CPU",
        "  right: operators fit call(); call() and oracle() agree on the CPU",
    ]
    assert code == list_cards.RIGHT == 0


@pytest.mark.slow
def test_a_card_that_is_wrong(cards: Cards) -> None:
    """What else may be wrong with one, tests/bench/kernel tries."""
    code, said = cards(RIGHT.replace("ops.scale(out", "ops.scaled(out"))
    assert code == list_cards.WRONG == 1
    assert f"{CARD}:15: call: the library registers no operator scaled; it" in said, said
    assert ("right:" in said, "/repo/" in said) == (False, False), "paths are the repository's"


@pytest.mark.slow
def test_what_needs_no_library_is_tried_where_none_can_be_built(cards: Cards) -> None:
    elsewhere = RIGHT.replace('"csrc/scale*"', '"csrc/scale*", torch="1.0"')
    code, said = cards(elsewhere)
    fit = "inputs(), outputs(), oracle() and compare() fit each other"
    assert (code, said.splitlines()[-1]) == (3, f"  not compiled: {fit}"), "and why stands on standard error"
    code, said = cards(elsewhere.replace("return factor * x", "return fctor * x"))
    assert (code, ": oracle: NameError: name 'fctor' is not defined" in said) == (1, True)
    assert said.splitlines()[-1].startswith("not compiled: the card scale is compiled for torch 1.0, but torch "), said
    assert "  build: Extension, csrc/scale*, for torch 1.0 alone\n" in cards(elsewhere, "--list")[1]


@pytest.mark.slow
def test_members_name_the_inputs_that_they_take(cards: Cards) -> None:
    """As `call` does: an oracle needs no workspace of the kernel's."""
    card = RIGHT.replace('"csrc/scale*"', '"csrc/scale*", torch="1.0"').replace("dict(x=", "dict(workspace=draw(1), x=")
    card = card.replace("import Ext", "import Output, Ext")
    card += "\n    def outputs(self, case, factor):\n        return Output(case.N)\n"
    assert cards(card)[0] == 3
    code, said = cards(card.replace("def oracle(self, case, x", "def oracle(self, case, y"))
    assert (code, "oracle() missing 1 required positional argument: 'y'" in said) == (1, True)


def test_sources_that_do_not_compile(cards: Cards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALE_FILES, "csrc/scale.cpp", "int broken = missing;\n")
    code, said = cards(RIGHT)
    assert (code, f"{CARD}: build: " in said, "missing" in said) == (1, True, True)


def test_where_torch_is_not_installed_that_is_said(cards: Cards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_cards.util, "find_spec", lambda _: None)
    code, said = cards(RIGHT)
    why = "it can be read; torch is not installed here, so that nothing more was tried"
    assert (code, said.splitlines()[-1]) == (0, f"  right: {why}")


def test_a_repository_without_cards(cards: Cards) -> None:
    code, said = cards("")
    assert code == list_cards.NONE == 2
    assert said.startswith("there are no cards: .ci/kernels/<name>.py describes a kernel")


def test_a_card_in_json(cards: Cards) -> None:
    code, said = cards(RIGHT.replace("class Scale", "klass Scale"), "--list", "--json")
    [mistake] = validated("cards", said)["mistakes"]
    assert (code, mistake["line"], "SyntaxError" in mistake["text"]) == (1, 4, True)
    code, said = cards(RIGHT.replace("csrc/scale*", "csrc/nowhere*"), "--json")
    answer = validated("cards", said)
    [one], [checked] = answer["cards"], answer["checked"]
    assert (code, one["name"], one["suites"]["cpu"][0]["id"]) == (1, "scale", "n8_fp32")
    [mistake] = checked["mistakes"]
    assert f"{CARD}:5: build: the working tree has no sources at csrc/nowhere*" in mistake, "paths are the repository's"
    assert "/repo/" not in mistake
