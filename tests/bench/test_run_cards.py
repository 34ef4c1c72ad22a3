"""`kernelgate fuzz` and `kernelgate bench` in a repository with several cards, on compiled libraries."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.record import RunRecord
from kernelgate.bench.system import environment, lock
from kernelgate.ci.commands import cli
from kernelgate.ci.judge import stats
from tests import registered
from tests.bench.machine import CPU

pytestmark = pytest.mark.usefixtures("in_process")

BODY = (
    """
cases = [dict(M=4, dtype="fp32")]
cpu_cases = cases
fuzz = dict(M=range(1, 9))
def configurations(self, device):
    return {f"n{n}": {} for n in range(3)}
"""
    + registered.TWICE_METHODS
)
GPU_ONLY = BODY.replace("cpu_cases = cases\n", "")
KERNEL = registered.TWICE
WRONG = KERNEL.replace("2 * x", "3 * x")


class CardRepository:
    """Cards in .ci/kernels, and two commits' libraries in base/ and head/."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.output = folder / "run.json"
        self.name = "".join(letter if letter.isalnum() else "_" for letter in name)

    def card(self, name: str, body: str = BODY) -> Path:
        return registered.write_card(self.folder / ".ci" / "kernels", name, body)

    def library(self, side: str, name: str, code: str = KERNEL, own: Path | None = None, **fields: object) -> None:
        registered.build(self.folder / side / name, f"{self.name}_{side}_{name}", code, name, own, **fields)

    def same(self, name: str) -> None:
        """The base's library is the head's."""
        shutil.copytree(self.folder / "head" / name, self.folder / "base" / name)

    def run(self, *words: str) -> int:
        self.output.unlink(missing_ok=True)
        return cli.run([*words, "-o", str(self.output)])

    @property
    def made(self) -> RunRecord:
        return record.read(self.output)

    def bench(self, *words: str) -> RunRecord:
        sides = ("--base-library", "base", "--head-library", "head")
        assert self.run("bench", *sides, "--processes=1", "--rounds=6", *words) == 0
        return self.made


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> CardRepository:
    monkeypatch.setattr(lock.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(environment, "describe", lambda *_: CPU)
    monkeypatch.chdir(tmp_path)
    return CardRepository(tmp_path, request.node.name)


def codes(made: RunRecord) -> list[tuple[str | None, str]]:
    return [(note.code, note.text) for note in made.notes if note.code not in ("seed", "cpu_cores", "load")]


def test_a_card_without_cases_for_this_machine_is_skipped_and_not_timed(
    repo: CardRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    repo.card("one", GPU_ONLY)
    repo.library("head", "one")
    assert repo.run("fuzz", "--library", "head", "--seed", "7") == 2
    assert "fuzz one: skipped: the card one has no cases for a machine without a GPU" in capsys.readouterr().out
    assert [(check.card, check.status) for check in repo.made.checks] == [("one", "skipped")]
    repo.library("base", "one")
    assert repo.run("bench", "--base-library", "base", "--head-library", "head") == 64
    assert not repo.output.exists()
    said = "no card has cases for a CPU: run this where a GPU is, or give one cpu_cases"
    assert said in capsys.readouterr().err


IN_PART = BODY.replace("return 2 * x", "assert case.M < 6, 'more than I can tell'\n    return 2 * x")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "torch", "body", "code", "says"),
    [
        (KERNEL, None, BODY, 0, "24 of 24 configurations passed, seed 7"),
        (WRONG, None, BODY, 1, "0 of 24 configurations passed, seed 7"),
        (KERNEL, None, IN_PART, 3, " cannot be judged, such as "),
        (KERNEL, "0.1", BODY, 3, "skipped: "),
    ],
    ids=["right", "wrong", "not in part of its list", "not at all"],
)
def test_every_card_is_fuzzed_and_the_worst_decides_the_exit_code(
    repo: CardRepository,
    kernel: str,
    torch: str | None,
    body: str,
    code: int,
    says: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    repo.card("one", body)
    repo.card("two")
    repo.library("head", "one", kernel, torch=torch)
    repo.library("head", "two")
    found = repo.run("fuzz", "--library", "head", "--seed", "7")
    [one, two] = capsys.readouterr().out.split("fuzz two: ")
    assert (found, one.startswith("fuzz one: "), says in one) == (code, True, True)
    assert two.startswith("24 of 24 configurations passed")
    assert two.count("pass rate 100%; errors as shares of the tolerance: median ") == 1
    assert [card.name for card in repo.made.cards] == ["one", "two"]
    assert [bool(check.unjudged) for check in repo.made.checks] == [code == 3, False]


def test_one_configuration_of_one_card(repo: CardRepository, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        repo.card(name)
        repo.library("head", name)
    assert repo.run("fuzz", "--library", "head", "--case", "two/n1") == 0
    assert [(check.card, [one.id for one in check.results]) for check in repo.made.checks] == [("two", ["n1"])]
    for wrong, says in (
        ("n1", "there are 2 cards: write --case one/n1"),
        ("six/n1", "there is no card six; there are one, two"),
        ("one/n9", "there is no fuzz case n9; there are n0, n1, n2"),
    ):
        assert repo.run("fuzz", "--library", "head", "--case", wrong) == 64
        assert (says in capsys.readouterr().err, repo.output.exists()) == (True, False)


def test_a_library_without_a_card_anywhere(repo: CardRepository, capsys: pytest.CaptureFixture[str]) -> None:
    repo.library("head", "one")
    assert repo.run("fuzz", "--library", "head") == 3
    assert "no card says how one is judged" in capsys.readouterr().err


def test_what_is_unchanged_is_not_timed_unless_it_is_asked_for(repo: CardRepository) -> None:
    for name in ("one", "two"):
        repo.card(name)
        repo.library("head", name)
    repo.library("base", "one")
    repo.same("two")
    made = repo.bench()
    assert [(case.card, case.id) for case in made.cases] == [("one", "m4_fp32")]
    assert ("same_library", "base and head of two are the same library") in codes(made)
    assert len({(one.card, one.side) for one in made.builds}) == 4
    assert [card.name for card in made.cards] == ["one", "two"]
    assert {case.card for case in repo.bench("--same", "--case", "two/m4_fp32").cases} == {"two"}
    assert repo.bench("--case", "two/m4_fp32").processes == (), "a comparison of it could show nothing"


def test_a_workflow_says_whose_card_judged(repo: CardRepository) -> None:
    """With the label of a GPU the cards of the checkout are the default branch's."""
    card = repo.card("one")
    changed = registered.write_card(repo.folder / "changed", "one", BODY.replace("range(1, 9)", "range(1, 5)"))
    new = registered.write_card(repo.folder / "changed", "new", BODY)
    repo.library("base", "one", own=card)
    repo.library("head", "one", own=changed)
    repo.library("head", "new", own=new)
    made = repo.bench("--gpu", "l4")
    assert {card.name: card.source for card in made.cards} == {"one": "default branch", "new": "head"}
    of_cards = [code for code, _ in codes(made) if code != "compared_in_part"]  # which a busy machine adds
    assert of_cards == ["no_card_on_base", "head_alone", "card_changed"]
    assert {process.role for process in made.processes if process.id.startswith("new")} == {"block"}
    assert made.run.gpu == "l4"
    assert made.expected is not None
    assert (made.expected.label, [card.name for card in made.expected.cards]) == ("l4", ["new", "one"])


@pytest.mark.parametrize(("limit", "words"), [(4, ("--processes", "30")), (6, ())])
def test_an_undecided_case_is_timed_up_to_the_policys_limit(
    repo: CardRepository, limit: int, words: tuple[str, ...]
) -> None:
    """Six rounds a process decide nothing. Over so many looks alpha is spent, so no other number may end them."""
    (repo.folder / ".ci").mkdir(exist_ok=True)
    (repo.folder / ".ci" / "kernelgate.toml").write_text(f"[processes]\nlimit = {limit}\n")
    repo.card("one")
    repo.library("base", "one")
    repo.library("head", "one", KERNEL.replace("2 * x", "x + x"))
    repo.run("bench", "--base-library", "base", "--head-library", "head", "--rounds=6", *words)
    assert [len(case.processes) for case in record.timed_cases(repo.made)] == [limit]
    looks = [stats.look_alpha(0.001, count, 4, limit, 0.5) for count in range(4, limit + 1)]
    assert sum(looks) == pytest.approx(0.001)
