"""Figures in the prose of pages are those of kept records, of logs, and of what decides."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib import import_module
from itertools import permutations
from operator import attrgetter
from statistics import fmean, median, stdev

import numpy as np
import pytest
from scipy import stats

from benchmarks import proof
from kernelgate.bench import record
from kernelgate.bench.explain import ncu_reader
from kernelgate.bench.kernel import fuzz_trials
from kernelgate.ci.bisect.first_failing import enough
from kernelgate.ci.judge import correctness, inference
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
        assert f"|{'|'.join(row)}|" in page("timing")
    for line in (DATA / "timing" / "README.md").read_text(encoding="utf-8").splitlines():
        if any(f"`{name}.json`" in line for name in names):
            assert f"|{line.rsplit('|', 2)[1].strip()} s" in page("timing")


@pytest.mark.slow
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


def fleet(pattern: str, said: str) -> str:
    """With the least and the largest of a column of the fleet's table."""
    found = sorted(map(float, re.findall(pattern, page("runner"))))
    return said.format(found[0], found[-1])


def planted() -> str:
    [(bugs, caught)] = re.findall(r"\*\*all\*\*\|\|(\d+)\|.*?(\d+%)\|", page("fuzzing"))
    return f"of {bugs} [planted bugs](fuzzing.md#how-many-bugs-are-caught), {caught}"


def found() -> str:
    made = [record.read(DATA / "pairs" / f"{name}.json") for name, *_ in proof.PAIRS]
    failures = [[result.kind for _, result in correctness.fuzz_failures(one)] for one in made]
    wrong, crashed = ([kinds for kinds in failures if kind in kinds] for kind in ("wrong", "crashed"))
    right = [one for one, kinds in zip(made, failures, strict=True) if not kinds]
    slower = [one for one in right if judge(one, RULES).verdict is Outcome.REGRESSED]
    assert (len(made), len(wrong), len(crashed), len(slower)) == (17, 1, 2, 4)
    return "In seventeen [real commits](#real-commits), a wrong result, two crashes and four slowdowns"


def worst() -> str:
    """Of identical code: but for a lottery of the head's alone, which is told by itself."""
    shares = json.loads((ROOT / "benchmarks/results/frontier.json").read_text(encoding="utf-8"))["identical"]
    alone = shares.pop("20% of processes 10% slower, head")[-1]
    most = max(share[-1] for share in shares.values())
    told = f"{most:.1%} (unusual scatter), {alone:.1%} (the head runs 10% slower in every fifth process)"
    assert f"[simulated worst cases](statistics.md#error-rates): {told}" in page("proof")
    return (
        f"raises this to up to {most:.1%} ([simulated](#error-rates)). If the head happens to run 10% slower in every "
        f"fifth process, it is {alone:.1%}"
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("proof", planted),
        ("proof", lambda: fleet(r"\|(\d+) s\|\d+%\|", "[{:.0f} to {:.0f} s]")),
        ("proof", lambda: fleet(r"%\|([\d.]+)\|", "{:.2f} to {:.2f} USD a push")),
        ("fuzzing", latent),
        ("proof", found),
        ("statistics", worst),
        ("bisect", lambda: f"{enough(20, 20)} runs for a case that failed in 20 of 20, and {enough(20, 5)} for"),
        ("fuzzing", lambda: "up to {cpu} cases on a CPU and {cuda} on a GPU".format_map(fuzz_trials.COVERED)),
        ("runner", lambda: f"stop it after {RULES.costs.gpu_hour['NVIDIA L4'].idle_minutes:.0f} idle minutes"),
        ("runner", lambda: f"-mmin +{RULES.costs.gpu_hour['NVIDIA L4'].idle_minutes:.0f}"),
        ("statistics", lambda: "of more than {:g}%|2| |of more than {:g}%|3|".format(*inference.LOTTERY_PCT)),
        (
            "statistics",
            lambda: f"needs at least {RULES.gates.regression_pct / RULES.gates.mean_regression_pct:g} cases",
        ),
        ("statistics", lambda: f"in {2 * 0.25**2:.1%} of runs, all of four in {2 * 0.25**4:.1%}"),
        ("statistics", lambda: f"where 3% of 800 calls are wrong, {0.75**24:.1%}; where 1% are, {0.75**8:.0%}"),
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


LIMITS = {
    "CUDA_COOKBOOK": """\
|occupancy is below {ci.explain.bottleneck.LOW_OCCUPANCY_PCT}% and no unit is busy
up to {ci.explain.bottleneck.ENOUGH_OCCUPANCY_PCT}%, it is a possible cause|
|{ci.explain.bottleneck.LOCAL_SHARE*100}% of the instructions use local memory|
[tensor cores](#tensor-cores)|they are {ci.explain.bottleneck.UNIT_BUSY_PCT}% busy|
|they cause {ci.explain.bottleneck.CONFLICT_SHARE*100}% of shared memory's wavefronts|
|fewer than {ci.explain.bottleneck.DIVERGED_THREADS} of 32 threads work|
|they cause {ci.explain.bottleneck.BARRIER_SHARE*100}% of the waiting|
|{ci.explain.bottleneck.EXCESS_SHARE*100}% of the sectors are avoidable|
[DRAM](#dram-traffic)|it reaches {ci.explain.bottleneck.BANDWIDTH_BUSY_PCT}% of its peak|
[L2](#l2-traffic)|it reaches {ci.explain.bottleneck.BANDWIDTH_BUSY_PCT}% of its peak|
|multiprocessors are idle {ci.explain.bottleneck.IDLE_SHARE*100}% of the time|
|a call takes less than {ci.explain.bottleneck.LAUNCH_BOUND_US} µs
or the launch more than {ci.explain.next_step.LAUNCH_SHARE*100}% of it|
|a pipe or the issue slots are {ci.explain.bottleneck.UNIT_BUSY_PCT}% busy|
A unit is *busy* from {ci.explain.bottleneck.UNIT_BUSY_PCT}% of its peak on
of its peak on; at {ci.explain.bottleneck.SATURATED_PCT}% it is the limit
slower than its reference, keep a try that is {ci.explain.next_step.KEEP_FROM} times as fast as before
- below {RULES.gates.reference_min}: stop and profile
- below {ci.explain.next_step.PROFILE_BELOW}: profile, remove
- below {ci.explain.next_step.TUNE_BELOW}: full profile
- below {ci.explain.next_step.NEXT_BOTTLENECK_FROM}: document
{RULES.agents.gpu_seconds} s by default
one [optimisation session](loop.md) may use {ci.lab.mcp_server.SESSION_GPU_SECONDS} s
- from {ci.explain.next_step.NEXT_BOTTLENECK_FROM}: profile again""",
    "loop": """\
ends after {ci.lab.state.OPTIMISE_MINUTES} minutes (`--minutes`)
of which {ci.lab.state.CHANGE_MINUTES} are meant for changes
before its first try, after {ci.lab.state.WITHOUT_GATE_MINUTES} minutes without a passed gate
recommends to keep a change from {ci.explain.next_step.KEEP_FROM} times as fast as before
every {ci.lab.watching.REPORT_S} seconds; one that is silent for {ci.lab.watching.SESSION_SILENT_S} seconds is ended""",
    "bisect": """\
ends at {ci.bisect.posterior.CHANCE*100}% for one commit
the ends differ by less than {ci.bisect.rounds.SMALLEST_PCT}%, or after {ci.bisect.rounds.ROUNDS} such steps
run {ci.bisect.first_failing.FUZZ_RUNS} times at BAD""",
    "cards": """\
one for each kernel if there are at most {ci.commands.init.MOST_CARDS}
fuzzing also allows {bench.kernel.compare.ROUNDING} times the error
|{bench.kernel.card.FUZZED} draws|""",
    "comment": """\
takes {ci.judge.reference.MEMORY_INCREASE_PCT}% more than the base
REASON is one line of at most {ci.github.command.MAX_REASON} characters""",
    "fuzzing": """\
called up to {bench.check.ways.REPEATS} times on the same inputs
`.ci/kernelgate.toml` ({RULES.fuzz.gpu_limit_s} s)
Crashes and hangs may take {bench.check.fuzz.LOST_S} s in all
or a card has failed {bench.check.fuzz.MAX_FAILURES} times
limits the calls of each card. Default: {RULES.sanitizer.seconds}.""",
    "history": """\
baseline **stale** after {ci.judge.baseline_age.STALE_DAYS} days
removes samples older than {ci.history.retention.RAW_DAYS} days
newest {ci.history.past.NEWEST_RECORDS} records
From {ci.history.changes.SUSPECT*100}% on
{RULES.changes.gpu_seconds_a_night} by default. Each run of `confirm.yml` makes up to {ci.history.culprits.PAIRS} of
if its p is below {ci.history.nights.CONFIRM_P} (`CONFIRM_P`;
less than {ci.history.levels.SMALLEST_PCT}% is left of it""",
    "runner": "differs by more than {ci.history.canary.APART_PCT}% from the others' median",
    "security": "resolution ({ci.judge.witness.TOLERANCE_PCT}%; {ci.judge.witness.CPU_TOLERANCE_PCT}% on a CPU)",
    "statistics": """\
with probability {ci.judge.prior.QUIET_SHARE} it is near {ci.judge.prior.CHANGE_PCT}%
any size up to {ci.judge.prior.LARGEST_PCT}%
`processes.minimum` ({RULES.processes.minimum})
`processes.limit` ({RULES.processes.limit})
`certainty.alpha` ({RULES.certainty.alpha};
{RULES.certainty.alpha*100}% of pull requests with identical code get a false alarm
of {ci.judge.prior.HISTORY_TO_DIRECT_DF} degrees of freedom
more than `regression_pct` ({RULES.gates.regression_pct}%) slower
Cliff's delta of single samples ≥ {ci.judge.verdict.CLIFFS_DELTA}
at least `to_block` ({RULES.processes.to_block}) processes
|a block (`to_block`)|{RULES.processes.to_block}|
`improvement_pct` ({RULES.gates.improvement_pct}%)
`margin_pct` ({RULES.gates.margin_pct}%)
`mean_regression_pct` ({RULES.gates.mean_regression_pct}%)
`mean_improvement_pct` ({RULES.gates.mean_improvement_pct}%)
this changes by more than {ci.judge.dependence.CARRY_OVER_PCT}% is left out
SM clocks of head and base differ by {ci.judge.dependence.SIDE_CLOCK_PCT}%
SM clocks more than {ci.judge.validity.CLOCK_CHANGE_PCT}% apart
above {ci.judge.validity.WARN_TEMPERATURE_C} °C. `noisy`: the times' CV is above {ci.judge.validity.WARN_CV_PCT}%
fewer than {ci.judge.validity.DISTINCT_VALUES} distinct values
modes at least {ci.judge.validity.MODE_DISTANCE_PCT}% apart
times change by {ci.judge.validity.DRIFT_PCT}% within a process
scatter too far (p < {ci.judge.dependence.DISAGREE_P})
lie apart by more than {ci.judge.dependence.DISAGREE_PCT}% and more than a quarter of their mean
{ci.judge.validity.BEYOND_REFERENCE} times as fast as base and reference
fewer than {ci.judge.estimate.MINIMUM_ROUNDS} rounds
by more than {ci.judge.witness.TOLERANCE_PCT}% ({ci.judge.witness.CPU_TOLERANCE_PCT}% on a CPU)
with fewer, {ci.judge.prior.BASELINE_DRIFT_PCT}% is assumed
after a year, {ci.judge.prior.BASELINE_APART_PCT}%
at a level of {ci.judge.accuracy.LEVEL}
{ci.judge.accuracy.ACCURACY_MARGIN_PCT}% for the mean error, {ci.judge.accuracy.MAXIMUM_PCT}% for the largest
{ci.judge.accuracy.BIAS_ULP} ulp and a tenth""",
    "timing": """\
at most {bench.timing.verifier.BUDGET*100}% of the time
below {bench.timing.case_timing.STEP_SHARE*100}% of it
A process has {bench.timing.process.Measuring.rounds} rounds
after at most {RULES.processes.limit} processes""",
}


def limit(found: re.Match[str]) -> str:
    """Of the policy, or of a module of kernelgate."""
    path, _, rest = found[1].partition("RULES.")
    module, _, name = re.sub(r"(?<=[a-z])\.(?=[A-Z])", " ", path).partition(" ")
    value = attrgetter(rest or name)(RULES if rest else import_module(f"kernelgate.{module}"))
    return f"{100 * value if found[2] else value:,g}"


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_that_of_the_code(name: str) -> None:
    every = re.sub(r"\{([\w.]+)(\*100)?\}", limit, LIMITS[name]).splitlines()
    assert [said for said in every if said not in page(name)] == []
