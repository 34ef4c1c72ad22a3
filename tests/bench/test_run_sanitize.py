"""`kernelgate sanitize`: which cards are looked at, what reaches the record, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench import record
from kernelgate.bench.build.library import Libraries, Library, Manifest, Sides
from kernelgate.bench.check import sanitize
from kernelgate.bench.check.sanitize import SanitizerOptions
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel.cards import ChosenCase
from kernelgate.bench.kernel.commit import Compared
from kernelgate.bench.measure import run as measuring
from kernelgate.bench.system.worker import worker_pool
from kernelgate.ci.commands import cli
from kernelgate.ci.judge.prior import no_past
from kernelgate.ci.pipeline import local
from kernelgate.ci.policy.policy import Policy
from tests import faulty
from tests.bench.machine import CPU

RACE = record.CheckFinding(text="Race", kernel="k", file="csrc/k.cu", line=3, tool="racecheck")
FUZZED = record.Check(kind="fuzz", card="attention", status="passed", asked=0, run=0)
ROOT = Path(__file__).parents[2]


def library(key: str) -> Library:
    facts = {"card_sha256": None, "sha": None, "targets": (), "kernels": ()}
    made = Manifest.model_construct(card="attention", key=key, sha256=key, **facts)
    return Library(Path(key), made, cached=True)


def about(*names: str, base: str | None = "base") -> list[Compared]:
    """A card of each name, whose head is `head`."""
    cards = [faulty.card().model_copy(update={"name": name}) for name in names]
    return [Compared(card, Sides(library(base) if base else None, library("head")), None) for card in cards]


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, SanitizerOptions]]:
    """What is asked of each card, which finds nothing, on a machine with a GPU."""
    calls: list[tuple[str, SanitizerOptions]] = []

    def check(card: Any, _: Sides, gpu: object, options: SanitizerOptions, *_started: object) -> record.Check:
        calls.append((card.name, options))
        assert gpu == (8, 9)
        return record.Check(kind="sanitizer", card=card.name, status="passed", tools=options.tools)

    monkeypatch.setattr(sanitize, "check", check)
    monkeypatch.setattr(measuring, "only_gpu", lambda: (8, 9))
    monkeypatch.setattr(measuring.environment, "describe", lambda *_: CPU)
    return calls


def sanitized(cards: list[Compared], *ids: str) -> tuple[record.Check, ...]:
    return measuring.sanitize(cards, SanitizerOptions(), CPU, ids)


@pytest.fixture
def in_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(measuring, "libraries", lambda *_: Libraries({"attention": library("head")}))
    monkeypatch.setattr(measuring, "bases", lambda *_: Libraries({"attention": library("base")}))


def kernelgate(*words: str) -> int:
    return cli.cli.main(["sanitize", *words], standalone_mode=False) or 0


def test_what_keeps_one_card_from_being_looked_at_is_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(card: Any, *_: object) -> record.Check:
        if card.name == "attention":
            raise KernelgateError("compute-sanitizer is missing")
        return record.Check(kind="sanitizer", card=card.name, status="passed", asked=1, run=1)

    monkeypatch.setattr(sanitize, "check", check)
    first, second = sanitized(about("attention", "other"))
    assert (first.status, first.reason) == ("skipped", "compute-sanitizer is missing")
    assert second.status == "passed"
    assert sanitize.exit_code([first, second]) == 3


def test_a_card_whose_base_is_the_same_library_is_left_out_and_a_named_case_is_of_its_card_alone(
    asked: list[Any],
) -> None:
    cards = [*about("attention"), *about("other", base="head"), *about("third", base=None)]
    assert [check.card for check in sanitized(cards)] == ["attention", "third"]
    asked.clear()
    case = faulty.card().target.id
    sanitized(about("attention", "other"), f"other/{case}")
    ((name, options),) = asked
    assert (name, [one.id for one in options.cases]) == ("other", [case])


@pytest.mark.usefixtures("in_repository")
def test_in_a_pull_request_the_policy_names_tools_and_seconds(asked: list[Any]) -> None:
    assert kernelgate("--quick") == 0
    assert kernelgate("--quick", "--tool", "synccheck") == 0
    assert kernelgate() == 0
    assert [(options.tools, options.seconds) for _, options in asked] == [
        (("memcheck", "racecheck"), 20.0),
        (("synccheck",), 20.0),
        (sanitize.TOOLS, None),
    ]


@pytest.mark.usefixtures("in_repository")
def test_the_record_keeps_its_other_checks_and_gets_this_one_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    record.write(record.RunRecord(checks=(FUZZED,)), path)
    assert kernelgate("--base", "main", "--quick", "--record", str(path)) == 0
    racing = record.Check(
        kind="sanitizer", card="attention", status="failed", asked=1, run=1, findings=(RACE,), failed=1
    )
    monkeypatch.setattr(sanitize, "check", lambda *_: racing)
    capsys.readouterr()
    assert kernelgate("--base", "main") == 1
    assert "compute-sanitizer: racecheck: " in capsys.readouterr().out, "in the words of the comment"
    assert kernelgate("--base", "main", "--record", str(path), "--json") == 1
    assert json.loads(capsys.readouterr().out)["checks"][0]["findings"][0]["line"] == 3
    assert record.read(path).checks == (FUZZED, racing)


def test_the_local_run_looks_as_a_pull_request_does(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "fuzz_all", lambda *_: (FUZZED,))
    device = record.Device(name="NVIDIA L4", compute_capability="8.9")
    begun = record.RunRecord(environments=(record.Environment(device=device),))
    card, rules = faulty.card(), local.MeasuringRules(Policy(), no_past)
    with worker_pool() as workers:
        done = local.checked(about("attention"), [ChosenCase(card, card.target)], begun, workers, rules, {}, 1)
    assert [check.kind for check in done.checks] == ["fuzz", "sanitizer"]
    assert [(options.tools, options.seconds) for _, options in asked] == [(("memcheck", "racecheck"), 20.0)]
