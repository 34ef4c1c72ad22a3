"""Figures in the prose of pages are those of kept records, of logs, and of what decides."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import permutations
from statistics import fmean, median, stdev

import numpy as np
import pytest
from scipy import stats

from benchmarks import proof
from kernelgate.bench import record
from kernelgate.bench.check import fuzz, sanitize, trials, ways
from kernelgate.bench.core import hardware
from kernelgate.bench.explain import ncu_reader
from kernelgate.bench.kernel import card, compare, fuzz_trials
from kernelgate.bench.timing import canary as timed_canary
from kernelgate.bench.timing import case_timing, process, verifier
from kernelgate.ci.bisect import first_failing, posterior, rounds
from kernelgate.ci.github import client, command
from kernelgate.ci.history import canary, culprits, levels, nights, past, retention
from kernelgate.ci.history import changes as levels_changes
from kernelgate.ci.judge import (
    accuracy,
    baseline_age,
    correctness,
    dependence,
    estimate,
    inference,
    prior,
    reference,
    validity,
    verdict,
    witness,
)
from kernelgate.ci.judge.case import Outcome
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.lab import folder, state
from kernelgate.ci.lab.log import tries
from kernelgate.ci.policy import policy
from tests.ci.records import DATA, traces

ROOT = DATA.parents[1]
RULES = policy.load(ROOT / policy.POLICY_FILE)


def page(name: str) -> str:
    return " ".join((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8").split())


def changes(name: str) -> list[float]:
    """Of each case of a kept comparison, in percent."""
    return sorted(abs(one.change_pct or 0.0) for one in judge(record.read(DATA / f"{name}.json"), RULES).cases)


def test_the_lessons_are_of_records_and_sessions() -> None:
    text = page("performance")
    for name, said in (
        ("wgmma", "made the kernel {:.0f} to {:.0f}% faster"),
        ("exact_maxima", "Exact maxima cost {:.0f} to {:.0f}%"),
    ):
        low, *_, high = changes(f"comparisons/{name}")
        assert said.format(low, high) in text
    for session, what, said in (
        ("attention-two-consumers", "four consumers", "{:.1f}% faster than two"),
        ("attention-wgmma-tuned", "128 queries a block", "the kernel is {:.1f}% slower"),
        ("attention-wgmma-tuned", "a block for each tile", "with a block for each tile, {:.1f}%"),
        ("attention-mma-tuned", "DefaultTile, 3 blocks", "made the mma.sync path {:.1f}% slower"),
    ):
        [tried] = (one for one in tries(folder.read(ROOT / folder.FOLDER / session).events) if one.what == what)
        assert said.format(float(tried.said.split("%")[0])) in text
    exponentials, h200 = 32 * 8 * 512 * 512, hardware.gpu("h200")
    assert f"take {exponentials / (16 * h200.sm_count * 1980):.1f} µs each" in text, "16 a clock at 1,980 MHz"


def test_the_int8_product_is_as_slow_as_the_page_says() -> None:
    timings = [one for process in record.read(DATA / "cards/int8_same.json").processes for one in process.timings]
    both = [one.samples_us for one in timings if {"reference", "head"} <= one.samples_us.keys()]
    speeds = [median(one["reference"]) / median(one["head"]) for one in both]
    assert f"{min(speeds):.2f} to {max(speeds):.2f} times `torch._int_mm`'s speed" in page("performance")


def test_the_cookbook_has_the_times_of_its_reports() -> None:
    us = {
        name: ncu_reader.launches(str(DATA / f"nsight/attention_{name}.ncu-repz"))[0].figures["duration_us"]
        for name in ("before", "spills", "banks")
    }
    text = page("CUDA_COOKBOOK")
    for said in (
        f"four blocks instead of two, it took {us['spills']:.0f} µs instead of {us['before']:.0f}",
        f"Spills made attention {us['spills'] / us['before']:.1f} times slower",
        f"Without its swizzle, the attention kernel took {us['banks']:.0f} µs instead of {us['before']:.0f}",
    ):
        assert said in text


def test_the_costs_of_timing_are_those_of_its_records() -> None:
    names, cells = ("all_cases", "pull_request_suite"), list[tuple[str, str]]()
    for name in names:
        made = record.read(DATA / f"timing/{name}.json")
        costs = {one.phase: one.gpu_seconds or 0.0 for one in made.costs}
        sides = [one.samples_us for each in made.processes if each.role == "paired" for one in each.timings]
        pct = [
            100 * np.log(median(one["head"]) / median(one["base"])) for one in sides if {"head", "base"} <= one.keys()
        ]
        phases = " / ".join(f"{costs[phase]:.1f}" for phase in ("calls", "verifying", "witness"))
        cells.append((f"{phases} s", f"{fmean(pct):.2f}%, {stdev(pct):.2f}%".replace("-", "−")))
    for row in zip(*cells, strict=True):
        assert f"| {' | '.join(row)} |" in page("timing")
    for line in (DATA / "timing" / "README.md").read_text(encoding="utf-8").splitlines():
        if any(f"`{name}.json`" in line for name in names):
            assert f"| {line.rsplit('|', 2)[1].strip()} s" in page("timing")


def test_what_was_measured_before_the_design_is_in_the_traces() -> None:
    rng, fma, copy = np.random.default_rng(1), traces("quiet_fma_inter"), traces("quiet_copy_inter")
    scatter = (100 * np.std(np.log(np.median(of[:, 1], -1) / np.median(of[:, 0], -1)), ddof=1) for of in (fma, copy))
    assert "scatters by {:.2f}% (SM-bound) and {:.2f}% (bandwidth-bound)".format(*scatter) in page("timing")
    drawn = np.median(fma[:, :2, rng.integers(0, 200, (1000, 200))], axis=-1)
    ends = np.percentile(drawn, (2.5, 97.5), axis=-1)

    def differ(base: int, head: int) -> bool:
        (low, high), (least, most) = ends[:, base, 0], ends[:, head, 1]
        found = stats.mannwhitneyu(fma[base, 0], fma[head, 1])
        delta = abs(2 * found.statistic / 200**2 - 1)
        return bool((high < least or most < low) and found.pvalue < 0.05 and delta >= 0.3)

    pairs = list(permutations(range(len(fma)), 2))
    share = 100 * sum(differ(*pair) for pair in pairs) / len(pairs)
    assert f"a difference is reported {share:.0f}% of the time (SM-bound)" in page("timing")


def test_the_six_sessions_went_as_the_loop_says() -> None:
    names = ("attention-small-batch", "int8-few-rows", "int8-wide", "rmsnorm-long-rows", "rmsnorm-short-rows")
    sessions = [folder.read(ROOT / folder.FOLDER / name) for name in (*names, "swiglu-small")]
    shown = [state.summary(one.events, RULES, one.events[-1].at or "").figures for one in sessions]
    tried = [one for session in sessions for one in tries(session.events)]
    faster = [one.gain[0] for one in tried if one.gain and one.gain[1][0] > 0.5]
    seconds = [one.gpu_seconds or 0.0 for one in shown]
    assert f"took {min(seconds):.0f} to {max(seconds):.0f} s of the GPU each" in page("loop")
    assert len(faster) == 5
    said = f"Five of the {len(tried)} tries were certainly faster, by {min(faster):.1f} to {max(faster):.1f}%"
    assert said in page("loop")
    assert sum(one.gain_kept_pct > 1 for one in shown) == 1, "one session ended more than 1% faster"


def latent() -> str:
    kept = json.loads((ROOT / "benchmarks/results/fuzzing_latent.json").read_text(encoding="utf-8"))["results"]
    assert len(kept) == 5
    return f"no result differed by a bit in {min(one['calls'] for one in kept) // 10_000 * 10_000:,} or more calls"


def truncated() -> str:
    kept = json.loads((ROOT / "benchmarks/results/fuzzing_cpu.json").read_text(encoding="utf-8"))["results"]
    said = {one["bug"]: look["message"] for one in kept for look in one["looks"] if look["detector"] == "accuracy"}
    times = [
        said[f"{bug}"].split("ulp (")[1].split("×")[0]
        for bug in ("attention/cpu/output-truncated", "rmsnorm/cpu/rounded-twice")
    ]
    return "mean error {} times as large; rounding RMSNorm's twice, {} times".format(*times)


def searched() -> str:
    rows = (DATA / "bisect" / "README.md").read_text(encoding="utf-8").splitlines()
    seconds = [int(row.rstrip("| ").rsplit(" ", 1)[1]) for row in rows if row.startswith("| `")]
    return f"named the right commit in {min(seconds)} to {max(seconds)} s"


def fleet(pattern: str, said: str) -> str:
    """With the least and the largest of a column of the fleet's table."""
    found = sorted(map(float, re.findall(pattern, page("runner"))))
    return said.format(found[0], found[-1])


def planted() -> str:
    [(bugs, caught)] = re.findall(r"\*\*all\*\* \| \| (\d+) .*? (\d+%) \|", page("fuzzing"))
    return f"of {bugs} [planted bugs](fuzzing.md#how-many-bugs-are-caught), {caught}"


def found() -> str:
    made = [record.read(DATA / "pairs" / f"{name}.json") for name, *_ in proof.PAIRS]
    crashed = [one for one in made if correctness.fuzz_failures(one)]
    slower = [one for one in made if one not in crashed and judge(one, RULES).verdict is Outcome.REGRESSED]
    assert (len(made), len(crashed), len(slower)) == (11, 2, 2)
    return "in eleven [real commits](#real-commits), two crashes and two slowdowns"


def worst() -> str:
    """Of identical code: but for a lottery of the head's alone, which is told by itself."""
    shares = json.loads((ROOT / "benchmarks/results/frontier.json").read_text(encoding="utf-8"))["identical"]
    alone = shares.pop("20% of processes 10% slower, head")[-1]
    most = max(share[-1] for share in shares.values())
    assert f"at worst, [simulated](statistics.md#error-rates), in {most:.1%} |" in page("proof")
    return (
        f"up to {most:.1%} do ([simulated](#error-rates)), and {alone:.1%} if every fifth process slows the head alone "
        "by 10%"
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("proof", planted),
        ("proof", lambda: fleet(r" (\d+) s \| \d+% \|", "[{:.0f} to {:.0f} s]")),
        ("proof", lambda: fleet(r"% \| ([\d.]+) \|", "{:.2f} to {:.2f} USD a pull request")),
        ("fuzzing", latent),
        ("statistics", truncated),
        ("bisect", searched),
        ("proof", found),
        ("statistics", worst),
    ],
)
def test_a_figure_is_that_of_what_is_kept(name: str, said: Callable[[], str]) -> None:
    assert said() in page(name)


def test_a_card_is_as_long_as_is_said() -> None:
    cards = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("*/**/.ci/kernels/*.py"))
    said = f"about {round(median(len(card.splitlines()) for card in cards), -1):.0f} lines"
    assert all(
        said in text for text in (page("cards"), page("proof"), (ROOT / "README.md").read_text(encoding="utf-8"))
    )


GATES, SURE, BUSY = RULES.gates, RULES.certainty, RULES.processes
LIMITS = {
    "bisect": (
        f"ends at {posterior.CHANCE:.0%} for one commit, or for commits that cannot be told apart, when the ends "
        f"differ by less than {rounds.SMALLEST_PCT}%, or after {rounds.ROUNDS} rounds",
        f"run {first_failing.FUZZ_RUNS} times at BAD",
        f"{first_failing.enough(20, 20)} runs for a case that failed in 20 of 20, and {first_failing.enough(20, 5)}",
    ),
    "cards": (f"fuzzing also allows {compare.ROUNDING:g} times the error", f"| {card.FUZZED} draws |"),
    "comment": (
        f"takes {reference.MEMORY_INCREASE_PCT:g}% more than the base",
        f"REASON is one line of at most {command.MAX_REASON} characters",
    ),
    "fuzzing": (
        f"up to {ways.REPEATS:,} calls on the same inputs",
        f"{fuzz_trials.COVERED['cpu']} cases on a CPU, up to {fuzz_trials.COVERED['cuda']} on a GPU",
        f"`.ci/kernelgate.toml` ({RULES.fuzz.gpu_limit_s:g} s)",
        f"not answered for {trials.NAMED_S:g} s is named",
        f"Crashes and hangs may take {fuzz.LOST_S:g} s in all",
        f"or a card has failed {fuzz.MAX_FAILURES} times",
        f"above {sanitize.MOST_BYTES / 2**20:g} MiB",
        f"limits the calls of each card. Default: {RULES.sanitizer.seconds:g}.",
    ),
    "history": (
        f"is **stale** after {baseline_age.STALE_DAYS} days",
        f"removes samples older than {retention.RAW_DAYS} days",
        f"newest {past.NEWEST_RECORDS} records",
        f"From {levels_changes.SUSPECT:.0%} on",
        f"{RULES.changes.gpu_seconds_a_night:g} by default. Each run of `confirm.yml` makes up to {culprits.PAIRS} of",
        f"if its p is at most {nights.CONFIRM_P:.4f} (`CONFIRM_P`); refuted if its 95% interval excludes a change of "
        f"{levels.SMALLEST_PCT}%, or if three",
    ),
    "reliability": (f"{'eight' if client.TRIES == 8 else client.TRIES} times at most",),
    "runner": (
        f"one that does {100 / timed_canary.SHARE:g}% more",
        f"differs by more than {canary.APART_PCT:g}% from the others' median",
        f"stop it after {RULES.costs.gpu_hour['NVIDIA L4'].idle_minutes:.0f} idle minutes",
        f"-mmin +{RULES.costs.gpu_hour['NVIDIA L4'].idle_minutes:.0f}",
    ),
    "statistics": (
        f"with probability {prior.QUIET_SHARE} it is near {prior.CHANGE_PCT:g}%",
        f"any size up to {prior.LARGEST_PCT:g}%",
        f"`processes.minimum` ({BUSY.minimum})",
        f"`processes.limit` ({BUSY.limit})",
        f"`certainty.alpha` ({SURE.alpha};",
        f"{SURE.alpha:.1%} of pull requests with identical code get a false alarm",
        f"in {2 * 0.25**2:.1%} of runs of two processes, but in {2 * 0.25**4:.1%} of four",
        "two processes if the change is more than {:g}%, three if it is more than {:g}%".format(*inference.LOTTERY_PCT),
        f"of {prior.HISTORY_TO_DIRECT_DF:g} degrees of freedom",
        f"slower than `regression_pct` ({GATES.regression_pct:g}%), Cliff's delta of single samples ≥ "
        f"{verdict.CLIFFS_DELTA}, at least `to_block` ({BUSY.to_block}) processes",
        f"`improvement_pct` ({GATES.improvement_pct:g}%)",
        f"`margin_pct` ({GATES.margin_pct:g}%)",
        f"`mean_regression_pct` ({GATES.mean_regression_pct:g}%)",
        f"`mean_improvement_pct` ({GATES.mean_improvement_pct:g}%)",
        f"a regression takes {GATES.regression_pct / GATES.mean_regression_pct:g} cases",
        f"left out above {dependence.CARRY_OVER_PCT}%",
        f"SM clock {dependence.SIDE_CLOCK_PCT}% off",
        f"SM clocks more than {validity.CLOCK_CHANGE_PCT:g}% apart",
        f"above {validity.WARN_TEMPERATURE_C:g} °C; CV above {validity.WARN_CV_PCT:g}%",
        f"fewer than {validity.DISTINCT_VALUES} distinct values",
        f"modes at least {validity.MODE_DISTANCE_PCT:g}% apart",
        f"times change by {validity.DRIFT_PCT:g}% within a process",
        f"scatter too far (p < {dependence.DISAGREE_P:.4f}) | warning; no verdict if they differ by more than "
        f"{dependence.DISAGREE_PCT:g}%",
        f"{validity.BEYOND_REFERENCE:g} times as fast as base and reference",
        f"fewer than {estimate.MINIMUM_ROUNDS} rounds",
        f"by more than {witness.TOLERANCE_PCT:g}% ({witness.CPU_TOLERANCE_PCT:g}% on a CPU)",
        f"where 3% of 800 calls are wrong, {0.75**24:.1%}; where 1% are, {0.75**8:.0%}",
        f"with fewer, {prior.BASELINE_DRIFT_PCT:g}% is assumed",
        f"after a year, {prior.BASELINE_APART_PCT:g}%",
        f"at a level of {accuracy.LEVEL}",
        f"{accuracy.ACCURACY_MARGIN_PCT:g}% for the mean error, {accuracy.MAXIMUM_PCT:g}% for the largest, "
        f"{accuracy.BIAS_ULP} ulp and a tenth",
    ),
    "timing": (
        f"at most {verifier.BUDGET:.0%} of the time",
        f"below {case_timing.STEP_SHARE:.1%} of it",
        f"A process has {process.Measuring(0).rounds} rounds",
        f"after at most {BUSY.limit} processes",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_that_of_the_code(name: str) -> None:
    assert [said for said in LIMITS[name] if said not in page(name)] == []
