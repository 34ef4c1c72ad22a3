"""What verbs print with --json is one object of the published schema, and exit codes are the same with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import click
import numpy as np
import pytest

from kernelgate.bench import record
from kernelgate.bench.kernel import commit
from kernelgate.bench.kernel.cards import Cards
from kernelgate.bench.measure import run as measuring
from kernelgate.bench.record import Check, RunRecord
from kernelgate.ci.commands import cli, measure, schema
from kernelgate.ci.commands.options import AskedSides, FiniteNumber
from kernelgate.ci.document.model import Report
from kernelgate.ci.judge import gate
from kernelgate.ci.pipeline import local
from kernelgate.ci.report import links
from tests import runs
from tests.called import EndsWith
from tests.ci.answered import validated
from tests.ci.records import case, noise, with_calls

ROOT = Path(__file__).parents[3]
RECORD = "tests/data/cards/swiglu_slower.json"
REPORT = next((ROOT / "tests/data/nsight").glob("*.ncu-rep")).relative_to(ROOT)
CALLS = [
    ["decide", "0.4", "1.0", "--before-ms", "2"],
    ["compare", RECORD],
    pytest.param(["report", RECORD], marks=pytest.mark.slow),
    ["template", "README.md"],
    ["patterns", "--all"],
    ["prompt", "recorded-n"],
    ["cards", "--list"],
    pytest.param(["analyze", str(REPORT)], marks=pytest.mark.slow),
    ["cache", "prune"],
    ["resources", "--tile", "48KiB"],
]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_every_command_prints_json_of_a_schema() -> None:
    every = {name for name, _ in schema.commands(cli.cli)} - {"mcp", "schema", "demo", "history next"}
    assert {name for name in every - schema.models().keys() if not name.startswith("step ")} == set()


def test_schema_lists_and_prints(ends_with: EndsWith) -> None:
    assert {"compare", "session next", "record"} <= set(ends_with(0, "schema").out.splitlines())
    assert json.loads(ends_with(0, "schema", "session", "next").out)["type"] == "object"
    assert "mcp prints no JSON" in ends_with(64, "schema", "mcp").err


@pytest.mark.parametrize("words", CALLS, ids=lambda words: words[0])
def test_an_answer_is_of_its_schema_and_the_exit_code_stays(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    monkeypatch.setenv("KERNELGATE_CACHE", str(tmp_path / "cache"))
    printed = ends_with(cli.run(words), *words, "--json").out
    command = "cache prune" if words[0] == "cache" else words[0]
    assert validated(command, printed)


def test_a_fuzz_answer_holds_its_checks(monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith) -> None:
    done = record.read(ROOT / RECORD).checks
    failed = (Check(kind="fuzz", card="c", status="failed", run=1, failed=1),)
    for fuzzed, code in ((RunRecord(checks=done), 0), (RunRecord(checks=failed), 1)):
        monkeypatch.setattr(measuring, "fuzz", lambda *_, made=fuzzed: made)
        assert len(validated("fuzz", ends_with(code, "fuzz", "--json").out)["checks"]) == 1


def test_bench_says_which_timed_results_are_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    """The comment's command for that must show it."""
    bad = with_calls(case(*noise(np.random.default_rng(1))), head=record.Calls(compared=9, failed=1))
    made = runs.run_record([bad])
    monkeypatch.setattr(measuring, "bench", lambda *asked: record.write(made, asked[2]))
    for of, name in ((AskedSides, "built"), (commit, "judged"), (measure, "worker_pool")):
        monkeypatch.setattr(of, name, MagicMock())
    said = ends_with(0, "bench", "-o", str(tmp_path / "run.json")).err
    assert "one: the head's timed output is wrong in 1 of 9 compared calls of process 1" in said


def test_a_blocked_change_answers_that_it_blocks(monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith) -> None:
    decided = gate.Decision("failure", blockers=(gate.Blocker(gate.BlockCode.SHARED_COMMIT),))
    result = local.LocalResult(Report(headline=("5% slower",), summary=()), decided)
    monkeypatch.setattr(local, "run", lambda *_: result)
    answer = validated("pr", ends_with(1, "pr", "--json").out)
    assert (answer["blocks"], answer["conclusion"], answer["why"]) == (True, "failure", "5% slower")


@pytest.mark.slow
def test_measuring_verbs_answer_on_the_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "run.json")
    quick = ["--suite", "cpu", "--processes", "1", "--rounds", "5", "--alone"]
    for verb, asked in (("build", []), ("bench", [*quick, "-o", out]), ("doctor", []), ("resources", ["--alone"])):
        cli.run([verb, *asked, "--json"])
        assert validated(verb, capsys.readouterr().out), verb


def test_every_seed_fits_a_record() -> None:
    seeds = [one for _, command in schema.commands(cli.cli) for one in command.params if one.name == "seed"]
    assert seeds
    for one in seeds:
        assert isinstance(one.type, click.IntRange)
        assert one.type.max == 2**64 - 1, "which is then all that a record can hold"
    assert cli.run(["fuzz", f"--seed={2**64}"]) == 64


def test_every_number_that_may_be_fractional_is_finite(ends_with: EndsWith) -> None:
    """NaN is in every range, and what becomes infinite is null in a log, which nobody could read again."""
    checked = 0
    for name, command in schema.commands(cli.cli):
        for one in command.params:
            assert not isinstance(one.type, click.types.FloatParamType) or isinstance(one.type, FiniteNumber), name
            if isinstance(one.type, FiniteNumber):
                for value in ("nan", "inf", "-inf", "1e400", "1e300"):
                    checked += 1
                    given = [f"{one.opts[0]}={value}"] if isinstance(one, click.Option) else ["--", *[value] * 2]
                    said = ends_with(64, *name.split(), *given).err
                    assert "is no number up to 1e+21" in said or "is not in the range" in said, (name, value)
    assert checked > 50


def test_words_that_no_number_of_the_policy_has_are_named(ends_with: EndsWith) -> None:
    assert "no number that decides has a name with spils or regs" in ends_with(64, "policy", "spils", "regs").err
    assert "gates.regression_pct = " in ends_with(0, "policy", "spils", "REGRESSION_PCT").out


def test_a_bench_by_cards_of_a_folder_is_repeated_by_them_and_between_the_same_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what `kernelgate compare` offers finds no card, or meets the working tree."""
    asked: list[Mapping[str, Any]] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(AskedSides, "built", lambda _: {})
    monkeypatch.setattr(AskedSides, "judging", lambda _: Cards(tmp_path, ()))
    monkeypatch.setattr(measure, "worker_pool", lambda: nullcontext(Mock()))
    monkeypatch.setattr(measure.measuring, "bench", lambda _, how, *__: asked.append(how.called))
    for more in (["--head", "b" * 40], []):
        assert cli.run(["bench", "--base", "a" * 40, *more, "--cards", str(tmp_path), "-o", "run.json"]) != 0
    both, tree = (links.same_here(record.Run(head_sha="b" * 40, **one), "--head") for one in asked)
    assert both == ("--head", "b" * 12, "--cards", str(tmp_path))
    assert tree == ("--cards", str(tmp_path))
