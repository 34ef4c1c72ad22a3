"""`kernelgate cards`: what the cards of a repository say, and whether they are right. Real compilers."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.measure import list_cards
from kernelgate.ci.commands import cli
from tests.ci.answered import validated
from tests.miniature import SCALE_FILES, repository

CARD = ".ci/kernels/scale.py"
RIGHT = SCALE_FILES[CARD].replace(
    "    def inputs", "    cpu_cases = [dict(N=8, dtype='fp32')]\n    fuzz = dict(N=range(1, 9))\n\n    def inputs"
)
RIGHT += "\n    def flops(self, case):\n        return case.N\n"


@pytest.fixture(autouse=True)
def _no_gpu(cache: Path) -> None:
    """A cache of the test's own."""


def cards(
    tmp_path: Path, card: str, *words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    """The exit code, and what was said, of a repository with this card, in a folder of it."""
    repo = repository(tmp_path / "repo", {**SCALE_FILES, CARD: card} if card else {"README.md": ""})
    (repo / "csrc").mkdir(exist_ok=True)
    monkeypatch.chdir(repo / "csrc")
    code = cli.run(["cards", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_a_right_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = cards(tmp_path, RIGHT, monkeypatch=monkeypatch, capsys=capsys)
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
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("return factor * x", "return factor + x", f"{CARD}:14: call: call() and oracle() do not agree at out["),
        ("return case.N\n", "return None\n", f"{CARD}:20: flops: flops() is not given"),
        ("ops.scale(out", "ops.scaled(out", f"{CARD}:15: call: the library registers no operator scaled; it"),
        ("csrc/scale*", "csrc/other*", f"{CARD}:5: build: the working tree has no sources at csrc/other*"),
        ("x=draw(case.N)", "x=draw(case.K)", f"{CARD}:12: inputs: AttributeError: the case has no axis 'K'"),
    ],
    ids=["oracle", "work", "operator", "sources", "card"],
)
def test_a_card_that_is_wrong(
    tmp_path: Path,
    old: str,
    new: str,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert RIGHT.count(old) == 1
    code, said, _ = cards(tmp_path, RIGHT.replace(old, new), monkeypatch=monkeypatch, capsys=capsys)
    assert code == list_cards.WRONG == 1
    assert says in said, said
    assert "right:" not in said
    assert str(tmp_path) not in said, "paths are the repository's"


def test_sources_that_do_not_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(SCALE_FILES, "csrc/scale.cpp", "int broken = missing;\n")
    code, said, _ = cards(tmp_path, RIGHT, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 1
    assert f"{CARD}: build: " in said
    assert "missing" in said


def test_listing_compiles_nothing_and_needs_no_torch(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = RIGHT.replace("csrc/scale*", "csrc/nowhere*")
    code, said, _ = cards(tmp_path, wrong, "--list", monkeypatch=monkeypatch, capsys=capsys)
    assert (code, said.splitlines()[1]) == (0, "  build: Extension, csrc/nowhere*")
    assert not cache.exists()


def test_where_torch_is_not_installed_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(list_cards.util, "find_spec", lambda _: None)
    code, said, _ = cards(tmp_path, RIGHT, monkeypatch=monkeypatch, capsys=capsys)
    assert (code, said.splitlines()[-1]) == (
        0,
        "  right: it can be read; torch is not installed here, so that nothing more was tried",
    )


@pytest.mark.parametrize(("old", "code"), [("", 0), ("class Scale", 1)])
def test_one_json_object(
    tmp_path: Path, old: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    card = RIGHT.replace(old, "klass Scale") if old else RIGHT
    found, said, _ = cards(tmp_path, card, "--list", "--json", monkeypatch=monkeypatch, capsys=capsys)
    answer = validated("cards", said)
    assert (found, answer["checked"]) == (code, [])
    if code:
        (mistake,) = answer["mistakes"]
        assert (Path(mistake["file"]).name, mistake["line"], answer["cards"]) == ("scale.py", 4, [])
        assert "SyntaxError" in mistake["text"]
    else:
        (one,) = answer["cards"]
        assert (one["name"], one["suites"]["cpu"][0]["id"]) == ("scale", "n8_fp32")


@pytest.mark.parametrize("words", [(), ("--list",)])
def test_no_cards_at_all(
    tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, _ = cards(tmp_path, "", *words, monkeypatch=monkeypatch, capsys=capsys)
    assert code == list_cards.NONE == 2
    assert said.startswith("there are no cards: .ci/kernels/<name>.py describes a kernel")


@pytest.mark.parametrize(("old", "code"), [pytest.param("", 0, marks=pytest.mark.slow), ("csrc/scale*", 1)])
def test_what_was_checked_stands_in_the_object(
    tmp_path: Path, old: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    card = RIGHT.replace(old, "csrc/nowhere*") if old else RIGHT
    found, said, _ = cards(tmp_path, card, "--json", monkeypatch=monkeypatch, capsys=capsys)
    (one,) = validated("cards", said)["checked"]
    assert (found, one["card"], len(one["mistakes"]), one["right"] is None) == (code, "scale", code, bool(code))
    assert str(tmp_path) not in str(one)
