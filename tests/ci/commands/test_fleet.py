"""A measurement that several machines share, by the commands that they run."""

from __future__ import annotations

import json
import math
import random
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.record import Run, RunRecord, timed_cases
from kernelgate.ci.judge.case import Outcome
from tests import shards
from tests.called import EndsWith
from tests.processes import wait_for
from tests.shards import Checkout, told

ROOT = Path(__file__).parents[3]


def test_the_page_says_what_two_gpus_gained() -> None:
    kept = json.loads((ROOT / "tests/data/two_gpus/h200.json").read_text(encoding="utf-8"))
    one, two = kept["seconds"]["one"], kept["seconds"]["merged"]
    said = f"{len(kept['cases'])} cases of attention took {two:.0f} s instead of {one:.0f} s, with the same verdicts"
    assert said in " ".join((ROOT / "docs/runner.md").read_text(encoding="utf-8").split())
    for case in kept["cases"].values():
        assert case["one"]["status"] == case["merged"]["status"]
        assert case["one"]["change_pct"] == pytest.approx(case["merged"]["change_pct"], abs=0.3)


def test_the_page_says_how_much_a_neighbour_disturbs() -> None:
    kept = json.loads((ROOT / "tests/data/two_gpus/neighbour.json").read_text(encoding="utf-8"))
    most = max(abs(sum(one["busy"]) / sum(one["idle"]) - 1) for one in kept["us"].values())
    said = f"drew {kept['neighbour_watts']:.0f} W, a copy, a bfloat16 product and a short kernel on the other took"
    text = " ".join((ROOT / "docs/runner.md").read_text(encoding="utf-8").split())
    assert f"{said} the same time within {math.ceil(most * 1000) / 10:.1f}%." in text


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout(tmp_path_factory.mktemp("fleet"))


@pytest.mark.nightly
def test_two_shards_are_measured_apart_and_judged_together(checkout: Checkout, tmp_path: Path) -> None:
    files = [tmp_path / "1.json", tmp_path / "2.json"]
    for number, file in enumerate(files, 1):
        checkout.run(*checkout.bench(file, "--shard", f"{number}/2"))
    first, second = map(record.read, files)
    assert {case.key for case in first.cases}.isdisjoint(case.key for case in second.cases)
    said, _ = checkout.run("merge", *map(str, files), "-o", str(tmp_path / "run.json"))
    assert said.strip() == str(tmp_path / "run.json")
    together = record.read(tmp_path / "run.json")
    assert [case.axes["N"] for case in together.cases] == list(shards.SIZES)
    assert all(case.processes for case in timed_cases(together))
    assert told(together)[0] is Outcome.REGRESSED
    assert len(together.checks) == 1, "the accuracies of one card are one check"
    assert {one.case for one in together.checks[0].accuracies} == {case.id for case in together.cases}
    _, said = checkout.run("merge", str(files[1]), "-o", str(tmp_path / "half.json"))
    assert "shard 1/2 is missing: not measured: scale/" in said


@pytest.mark.nightly
def test_a_run_that_is_killed_at_random_moments_loses_nothing(checkout: Checkout, tmp_path: Path) -> None:
    """By SIGTERM, which is a notice, and by SIGKILL; what was finished stays to the byte."""
    whole, file = tmp_path / "whole.json", tmp_path / "run.json"
    checkout.run(*checkout.bench(whole))
    moments = random.Random(11)
    kept: tuple[record.Process, ...] = ()
    endings = list[str | None]()
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM, signal.SIGTERM):
        with checkout.start(*checkout.bench(file, "--resume")) as verb:
            wait_for(lambda: file.exists() or verb.poll() is not None, what="nothing was timed")
            with suppress(subprocess.TimeoutExpired):
                verb.wait(moments.uniform(4, 14))
            verb.send_signal(number)
            _, said = verb.communicate(timeout=120)
        if verb.returncode == 0:
            break
        assert verb.returncode == (75 if number == signal.SIGTERM else -number), said
        so_far = record.read(file)
        endings.append(so_far.run.ended)
        assert so_far.processes[: len(kept)] == kept
        kept = so_far.processes
        if number == signal.SIGTERM:
            assert f"preempted with {len(kept)} processes in {file}: the same command with --resume goes on" in said
    assert "preempted" in endings
    checkout.run(*checkout.bench(file, "--resume"))
    done = record.read(file)
    assert done.processes[: len(kept)] == kept
    assert done.run.ended == "complete"
    assert [check.kind for check in done.checks] == ["accuracy"]
    for made in (done, record.read(whole)):
        verdict, certain = told(made)
        assert verdict is Outcome.REGRESSED
        assert set(certain.values()) == {Outcome.REGRESSED}
    said, _ = checkout.run("report", str(file))
    assert "resumed after preemption" in said


def test_what_no_other_shard_could_join_is_refused_and_not_merged(tmp_path: Path, ends_with: EndsWith) -> None:
    assert "3/2 is no shard: write 1/4 to 4/4" in ends_with(64, "bench", "--shard", "3/2", "--seed", "1").err
    assert "--shard needs --seed: the same number" in ends_with(64, "bench", "--shard", "1/2").err
    file, output = tmp_path / "run.json", tmp_path / "all.json"
    record.write(RunRecord(run=Run(ended="complete")), file)
    assert f"{file} is no shard: measure each part with" in ends_with(3, "merge", file, "-o", output).err
    assert not output.exists()
