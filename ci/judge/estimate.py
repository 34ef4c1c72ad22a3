"""From the samples of one case to process estimates: everything that is known before anything is decided."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import Final

import numpy as np

from kernelgate.bench.record import CaseKey, Device, RunRecord, Side, TimedCase, TimedProcess, rates
from kernelgate.ci.document import formatting
from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.judge import correctness, dependence, location, prior, stats, validity, witness
from kernelgate.ci.judge.cards import HEAD_ALONE, SAME_LIBRARY, compared, same_library
from kernelgate.ci.judge.location import Location
from kernelgate.ci.judge.prior import NO_HISTORY, Fit, History, KnownSpread, Prior
from kernelgate.ci.judge.stats import Array, Pooled
from kernelgate.ci.judge.validity import Finding
from kernelgate.ci.policy.policy import Policy

MINIMUM_ROUNDS: Final = 20
"""Processes with fewer rounds are excluded."""
LEVEL_PCT: Final = 0.15
"""Standard deviation, between processes, of the time itself, which is compared with a stored baseline. Measured: 0.06
to 0.17%."""
LEVEL_PRIOR_PROCESSES: Final = 10
BLOCK_CHANGE_PCT: Final = 0.1
"""If base and head were timed one after the other in a process (`block`) or in processes that take turns
(`alternating`), processes scatter more (measured: 0.02 to 0.18%) ..."""
BLOCK_BIAS_PCT: Final = 0.3
"""... and have a systematic error that more processes do not reduce. Measured: up to 0.26% for `block`."""
SURE_ERRORS: Final = 5.0
"""Standard errors beyond which no chance makes one library differ from itself."""
LONE_SHARE: Final = 0.25
"""A process is an outlier if the others lie within this share of the whole range."""
DISAGREE_SHARE: Final = 0.25
"""A scatter of 1.2% does not hide a change of 6%: one of less than this share of the change is in its interval."""
TWOFOLD: Final = math.log(2)
"""Nor does any scatter hide a change that is as large as this in each process."""
KNOWN_SPREAD = "known_spread"


@dataclass(frozen=True)
class Between:
    """The means of several GPUs of one kind; how far they lie apart beyond their own scatter widens the interval."""

    means: Array
    variances: Array
    centred: Array
    """The processes' values, moved by whole GPUs so that all GPUs have the mean of all."""

    @classmethod
    def of(cls, values: Array, variances: Array, prior: float, gpus: Sequence[int]) -> Between:
        weights = 1 / (prior**2 + variances)
        known, numbers = np.unique(gpus, return_inverse=True)
        masks = [numbers == number for number in range(len(known))]
        sums = np.array([weights[mask].sum() for mask in masks])
        means = np.array([weights[mask] @ values[mask] for mask in masks]) / sums
        own, df = values - means[numbers], len(values) - len(masks)
        scatter = float(weights @ own**2) / df if df else 1.0
        return cls(means, max(1.0, scatter) / sums, own + float(weights @ values / weights.sum()))

    @property
    def scatter(self) -> float:
        """How much further the means scatter than is explained (1: as much; squared scale)."""
        return stats.scatter_ratio(self.means, self.variances, 0.0)

    @property
    def disagree(self) -> bool:
        return stats.scatter_p(self.scatter, len(self.means) - 1) < dependence.DISAGREE_P

    def widened(self, pooled: Pooled) -> Pooled:
        """What all processes show, no surer than their GPUs are alike; where these disagree, what their means show."""
        if not self.disagree:
            of_means = math.sqrt(max(1.0, self.scatter) / float((1 / self.variances).sum()))
            return replace(pooled, error=max(pooled.error, of_means))
        error = float(np.std(self.means, ddof=1)) / math.sqrt(len(self.means))
        return Pooled(float(self.means.mean()), error, len(self.means) - 1, pooled.bias)


@dataclass(frozen=True)
class Group:
    """Estimates of one quantity, one a process, and how far such processes scatter as far as is known."""

    values: Array
    variances: Array
    prior: float
    """The scatter to expect."""
    prior_df: float
    """Of levels: how surely that is known. Of changes: how surely the rounds' noise is."""
    spread: Prior | None = None
    """Of changes: all that is known beforehand of their scatter."""
    left_out: int | None = None
    """A process that stands alone and changes nothing that is decided."""
    gpus: tuple[int, ...] = ()
    """The number of each process's GPU; empty where all ran on one."""

    @property
    def between(self) -> Between | None:
        values, variances, numbers = self.kept
        return Between.of(values, variances, self.prior, numbers) if numbers else None

    @property
    def within(self) -> Array:
        """The values of the processes that count, without what lies between their GPUs."""
        return self.between.centred if self.between else self.kept[0]

    @property
    def kept(self) -> tuple[Array, Array, tuple[int, ...]]:
        """Values, variances and GPUs of the processes that count."""
        out = self.left_out
        if out is None:
            return self.values, self.variances, self.gpus
        return np.delete(self.values, out), np.delete(self.variances, out), self.gpus[:out] + self.gpus[out + 1 :]

    @property
    def processes(self) -> int:
        return len(self.kept[0])

    @property
    def scatter_p(self) -> float:
        df = self.processes - len({0, *self.gpus})
        return stats.scatter_p(stats.scatter_ratio(self.within, self.kept[1], self.prior), df) if df else 1.0

    def fit(self) -> Fit | None:
        return prior.fit(*self.kept[:2], self.spread) if self.spread else None

    def pooled(self, usual: float | None = None) -> Pooled:
        """Its processes together; `usual`: the share of such cases that are usual, where the record shows another."""
        if found := self.fit():
            pooled = found.pooled(found.share if usual is None else usual, self.prior_df)
        else:
            pooled = stats.pool(*self.kept[:2], self.prior, self.prior_df)
        return self.between.widened(pooled) if self.between else pooled


@dataclass(frozen=True)
class Evidence:
    """One case: times in microseconds by process, each process's estimate of the log change, and the findings."""

    key: CaseKey
    base: tuple[Array, ...]
    head: tuple[Array, ...]
    reference: tuple[Array, ...]
    paired: bool
    """Round i of base and head was timed back to back."""
    groups: tuple[Group, ...]
    """One group, of log changes, where processes timed both sides; else two, of log times of the baseline and of the
    head. None where there is too little to estimate from."""
    bias: float
    """Bound on the error of the log change that more rounds or processes do not reduce."""
    findings: tuple[Finding, ...]
    process_ids: tuple[str, ...] = ()
    """Of the values of the last group: what several cases of one process share is no evidence twice."""
    drift: Pooled | None = None
    """How far times may have drifted since the baseline's day."""
    known: KnownSpread | None = None

    @property
    def disqualified(self) -> Finding | None:
        return next((finding for finding in self.findings if finding.disqualifies), None)

    @property
    def alone(self) -> bool:
        return any(finding.code == HEAD_ALONE for finding in self.findings)

    @property
    def against_baseline(self) -> bool:
        return len(self.groups) > 1

    @property
    def processes(self) -> int:
        return self.groups[-1].processes if self.groups else 0

    def pooled(self, usual: float | None = None) -> Pooled:
        sides = [group.pooled(usual) for group in self.groups]
        if len(sides) == 1:
            return replace(sides[0], bias=self.bias)
        return stats.difference(sides[0], sides[1], self.bias, self.drift)

    def by_process(self) -> list[tuple[float, float]]:
        """Each head process's own log change, with its standard error."""
        head, zero, noise = self.groups[-1], 0.0, 0.0
        if self.against_baseline and self.drift:
            before = self.groups[0].pooled()
            zero, noise = before.change, before.error**2 + head.prior**2 + self.drift.error**2
        errors = np.sqrt(head.variances + noise)
        return [(float(value) - zero, float(error)) for value, error in zip(head.values, errors, strict=True)]


def typical_times(case: Evidence, change: float) -> tuple[float, float]:
    """Times of base and head in microseconds that differ by exactly the log `change`. Against a baseline the head's
    stands; else what the sides' typical times disagree with it by is split between both."""
    out = case.groups[-1].left_out
    kept = ([one for index, one in enumerate(side) if index != out] for side in (case.base, case.head))
    base, head = (math.log(rates.typical_us(side) or math.nan) for side in kept)
    middle = head - change / 2 if case.against_baseline else (base + head) / 2
    return math.exp(middle - change / 2), math.exp(middle + change / 2)


def of_record(record: RunRecord, policy: Policy, history: History = NO_HISTORY, whole: bool = True) -> list[Evidence]:
    """The evidence of each compared case. `whole`: a witness that is lacking comes no more."""
    lacks = whole and record.expected is not None and "witness" in record.expected.checks
    wrong, seen = correctness.wrong_outputs(record, "base"), witness.log_ratios(record)
    device = record.environment.device
    tolerated = witness.tolerance(device)
    # One GPU is told from another by its UUID, a CPU by its host.
    where = {one.id: one.device.uuid or one.host or "" for one in record.environments}
    cases = [of_paired(case, device, policy, history.spread(device, case.key), where) for case in compared(record)]
    family, same = sum(bool(case.groups) and case.key in seen for case in cases), same_library(record)
    margin = math.log1p(policy.gates.margin_pct / 100)
    found = []
    for case in cases:
        against = [wrong[case.key]] if case.key in wrong else []
        against += witness.wrong_clocks(record, case.key.card)
        if case.groups:
            pooled, odd = case.pooled(), None
            if case.key in seen:
                alone = witness.apart(seen[case.key], case.base, case.head, tolerated)
                alpha = policy.certainty.alpha / family
                odd, wider = witness.contradiction(pooled, case.paired, alone, alpha, tolerated, policy.gates)
                case = replace(case, bias=case.bias + wider)
                odd = odd or witness.unconfirmed(pooled, alone, policy.gates)
            elif lacks and case.key.card not in same:
                odd = witness.unconfirmed(pooled, None, policy.gates)
            against += [*([odd] if odd else []), *witness.reachable(record, pooled.change)]
            if case.key.card in same and abs(pooled.change) > max(margin, SURE_ERRORS * pooled.error):
                # Beyond the margin, and far beyond its error: whoever made the record knows more than it says.
                change = formatting.percent(as_percent(pooled.change), sign=True)
                text = f"base and head are one library, which is not {change} from itself"
                against.append(Finding(SAME_LIBRARY, text, True))
        found.append(replace(case, findings=(*against, *case.findings)))
    return found


def of_paired(
    case: TimedCase,
    device: Device,
    policy: Policy,
    known: KnownSpread | None = None,
    where: Mapping[str, str] = MappingProxyType({}),
) -> Evidence:
    """`known`: what past comparisons show of the case's processes; `where`: the GPU that each environment is."""
    minimum = policy.processes.minimum
    of_head = [process for process in case.processes if process.samples_us.get("head")]
    if of_head and not any(process.samples_us.get("base") for process in case.processes):
        head, reference = _times(of_head, "head"), _times(of_head, "reference")
        found = [Finding(HEAD_ALONE, "the head was measured alone", True)]
        found += validity.of_telemetry(of_head, interleaved=True, slowed_are="")
        found += validity.implausible({"head": head}, reference, case.case, device)
        return Evidence(case.key, (), head, reference, False, (), 0.0, tuple(found))
    timed = [process for process in of_head if process.samples_us.get("base")]
    roles = {process.role for process in timed}
    paired = roles <= {"paired"}
    used, few = _usable(timed, minimum, "of base and head", shared_clock=paired)
    depends = dependence.judged(used, minimum) if paired else dependence.Dependence()
    used = [process for index, process in enumerate(used) if index not in depends.left_out]
    base, head, reference = (_times(used, side) for side in ("base", "head", "reference"))
    found = [*validity.of_telemetry(timed, paired, validity.SHARED if paired else validity.LEFT_OUT), *few]
    plain = Evidence(case.key, base, head, reference, paired, (), 0.0, tuple(found))
    if len(used) < minimum:
        return plain
    bias = _rounding(base, head)
    sides = {"base": base, "head": head}
    found += validity.of_samples(sides, paired, bias > math.log1p(policy.gates.margin_pct / 100))
    found += validity.implausible(sides, reference, case.case, device)
    if not paired:
        # Past comparisons were paired: of these processes they say nothing.
        known = None
        order_bias = witness.ALTERNATING_BIAS_PCT if "alternating" in roles else BLOCK_BIAS_PCT
        bias += math.log1p(order_bias / 100)
    step = max(location.log_step(np.concatenate(side)) for side in (base, head))
    changes = location.changes([np.log(b) for b in base], [np.log(h) for h in head], paired, step)
    names = [where.get(process.process.environment, "") for process in used]
    known_gpus = list(dict.fromkeys(names))
    numbers = tuple(map(known_gpus.index, names)) if len(known_gpus) > 1 else ()
    group, odd = of_changes(changes, prior.CHANGE_PCT if paired else BLOCK_CHANGE_PCT, known, policy, numbers)
    found += odd
    if group.between and group.between.disagree:
        told = ", ".join(f"{as_percent(float(mean)):+.1f}%" for mean in group.between.means)
        text = f"its GPUs disagree about the change ({told}), so each GPU counts as one measurement"
        found.append(Finding("gpus_disagree", text, False))
    own = (
        validity.modes_of_sides(base, head),
        validity.clocks_of_waiting(used),
        *([validity.drift_of_sides(base, head)] if paired else []),
    )
    change, moved = group.pooled().change, (*depends.moved, *own)
    for effect in moved:
        found += effect.against(change, policy.gates)
    bias += sum(effect.bias for effect in moved)
    if known:
        times = formatting.counted(known.comparisons, "earlier comparison")
        text = f"the spread between processes is known from {times}: {formatting.percent(known.spread_pct, 2)}"
        found.append(Finding(KNOWN_SPREAD, text, False))
    ids = tuple(process.process.id for process in used)
    return replace(plain, groups=(group,), bias=bias, findings=tuple(found), process_ids=ids, known=known)


def of_changes(
    changes: Sequence[Location],
    quiet_pct: float,
    known: KnownSpread | None,
    policy: Policy,
    numbers: tuple[int, ...] = (),
) -> tuple[Group, list[Finding]]:
    """`quiet_pct`: the spread of a quiet case; `numbers`: of the processes' GPUs."""
    expected_pct = max(quiet_pct, known.spread_pct) if known else quiet_pct
    rounds = sum(one.rounds for one in changes)
    group = replace(_group(changes, expected_pct, rounds, prior.prior(quiet_pct, known)), gpus=numbers)
    # The log changes at which what is said of a case changes.
    gates = policy.gates
    percents = (-gates.improvement_pct, -gates.margin_pct, 0.0, gates.margin_pct, gates.regression_pct)
    return _settle(group, policy.processes.to_block, sorted(math.log1p(bound / 100) for bound in percents))


def of_baseline(case: TimedCase, stored: TimedCase, device: Device, policy: Policy, drift: Pooled) -> Evidence:
    """The evidence of a case's head against the head that a baseline file holds. `drift`: what may lie between."""
    timed, before = ([process for process in one.processes if process.samples_us.get("head")] for one in (case, stored))
    found = [*validity.of_telemetry(timed, interleaved=True), *validity.clocks_apart(before, timed)]
    used, few = _usable(timed, policy.processes.minimum, "of the head")
    kept, few_before = _usable(before, 1, "in the baseline")
    base, head, reference = _times(kept, "head"), _times(used, "head"), _times(used, "reference")
    found += (*few, *few_before)
    plain = Evidence(case.key, base, head, reference, False, (), 0.0, tuple(found))
    if len(used) < policy.processes.minimum or not kept:
        return plain
    rounding = _rounding(base, head)
    # The clock alone could take a change across the margin.
    coarse = rounding > math.log1p(policy.gates.margin_pct / 100)
    found += validity.of_samples({"head": head}, False, coarse)
    found += validity.modes_of_side("head", head)
    # A stored process that jumps or drifts is uncertain, and its variance says so; it cannot be measured again.
    of_stored = (*validity.of_samples({"baseline": base}, False, coarse), *validity.modes_of_side("baseline", base))
    found += (replace(finding, disqualifies=finding.code == "few_values" and coarse) for finding in of_stored)
    found += validity.implausible({"head": head}, reference, case.case, device)
    groups = []
    for side in (base, head):
        logs, step = [np.log(samples) for samples in side], location.log_step(np.concatenate(side))
        levels = location.levels(logs, step)
        two = validity.two_modes(logs) if side is base else None
        if two and not two.keeps():
            # Its level lies between the two, wherever: a bound, which no number of the head's processes reduces.
            together, slow = np.concatenate(logs), np.concatenate(two.slow) > 0
            low, high = location.levels([together[~slow], together[slow]], step)
            rounding += (high.value - low.value) / 2
            levels = [replace(low, value=(low.value + high.value) / 2, variance=max(low.variance, high.variance))]
        group, odd = _settle(_group(levels, LEVEL_PCT, LEVEL_PRIOR_PROCESSES), policy.processes.to_block)
        groups.append(group)
        found += odd
    return replace(plain, groups=tuple(groups), bias=rounding, findings=tuple(found), drift=drift)


def _usable(
    processes: Sequence[TimedProcess], minimum: int, what: str, shared_clock: bool = False
) -> tuple[list[TimedProcess], list[Finding]]:
    """The processes that a judgement may rest on, and what is to be said of the others. `shared_clock`: both sides had
    it round by round, so a throttled process counts."""
    long = [process for process in processes if process.rounds >= MINIMUM_ROUNDS]
    used = [process for process in long if shared_clock or not validity.throttled(process)]
    findings = []
    if len(long) < len(processes):
        short = f"{len(processes) - len(long)} of {len(processes)} processes"
        fewer = f"fewer than {MINIMUM_ROUNDS} rounds and are left out"
        findings.append(Finding("short_process", f"{short} have {fewer}", False))
    if len(long) < minimum:
        few = f"{len(long)} process{'' if len(long) == 1 else 'es'} {what} with at least {MINIMUM_ROUNDS} rounds"
        findings.append(Finding("too_few", f"{few}; it takes {minimum}", True))
    elif len(used) < minimum:
        throttled = f"the GPU was throttled in {len(long) - len(used)} of {len(long)} processes"
        findings.append(Finding("throttled", throttled, True))
    return used, findings


def _times(processes: Iterable[TimedProcess], side: Side) -> tuple[Array, ...]:
    return tuple(np.array(process.samples_us[side]) for process in processes if process.samples_us.get(side))


def _rounding(*sides: Sequence[Array]) -> float:
    """The clock's part in the bias, as a log ratio; infinite where all times are equal, so that its step is unknown."""
    together = location.clock_step(np.concatenate([*chain(*sides)]))
    if together == 0.0:
        return math.inf
    steps = [location.clock_step(np.concatenate(side)) or together for side in sides]
    return sum(
        max(location.rounding_bias(samples, step) / stats.middle(np.sort(samples)) for samples in side)
        for side, step in zip(sides, steps, strict=True)
    )


def _group(found: Sequence[Location], prior_pct: float, prior_df: float, spread: Prior | None = None) -> Group:
    values, variances = np.array([(one.value, one.variance) for one in found]).T
    return Group(values, variances, math.log1p(prior_pct / 100), prior_df, spread)


def _settle(group: Group, to_block: int, bounds: Sequence[float] = ()) -> tuple[Group, list[Finding]]:
    """Names processes that scatter more than expected. One that stands alone is left out where it lies between the same
    `bounds` as the others, and further from no change than they. Far apart are changes by DISAGREE_PCT and
    DISAGREE_SHARE of what they are together, unless each is TWOFOLD in one direction."""
    if group.scatter_p >= dependence.DISAGREE_P:
        return group, []
    # Changes have a prior of any spread; levels are judged by themselves.
    by_themselves = group if group.spread else replace(group, prior_df=0)
    values = group.within
    lowest, highest = float(values.min()), float(values.max())
    reach = highest - lowest
    size, least = (abs(float(values.mean())), max(lowest, -highest)) if group.spread else (0.0, 0.0)
    far = least < TWOFOLD and reach > max(math.log1p(dependence.DISAGREE_PCT / 100), DISAGREE_SHARE * size)
    rests = [np.delete(values, index) for index in range(len(values))]
    odd = int(np.argmax([abs(value - rest.mean()) for value, rest in zip(values, rests, strict=True)]))
    if group.processes < 3 or np.ptp(rests[odd]) >= LONE_SHARE * reach:
        message = f"processes disagree by {as_percent(reach):.1f}%, more than their rounds explain"
        return by_themselves, [Finding("processes_disagree", message, far)]
    lone, others = float(values[odd]), float(rests[odd].mean())
    message = f"process {odd + 1} stands alone, {as_percent(lone - others):+.1f}% off the {len(rests[odd])} others"
    rest = replace(group, left_out=odd)
    between = len(bounds) > 0 and np.searchsorted(bounds, lone) == np.searchsorted(bounds, others)
    idle = between and abs(lone) > abs(others)
    if idle and rest.processes >= to_block and rest.scatter_p >= dependence.DISAGREE_P:
        return rest, [Finding("lone_process", f"{message}, and is left out: it would change nothing", False)]
    return by_themselves, [Finding("lone_process", message, far)]
