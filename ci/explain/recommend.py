"""What to try next: at most three things for a kernel, best first, each with its reason, its gain and its page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kernelgate.bench.explain.ncu_reader import ProfiledKernel, Rule
from kernelgate.ci.explain.actions import CATALOGUE, Action, against
from kernelgate.ci.explain.bottleneck import ranked
from kernelgate.ci.explain.budget import Contribution
from kernelgate.ci.explain.diagnosis import Bottleneck, Diagnosis
from kernelgate.ci.explain.facts import Facts, limiter
from kernelgate.ci.explain.in_words import cause

MAX_RECOMMENDATIONS = 3


@dataclass(frozen=True)
class Recommendation:
    name: str
    """Of the action, in ci/explain/actions.py."""
    action: str
    """In words, fitted to this kernel."""
    reason: str
    expected_gain_pct: float | None
    """At most this much of the kernel's time; None where nothing says how much."""
    source: str
    """`kernelgate`, or `nvidia:` and the rule's identifier."""
    link: str


RULES: Mapping[str, Bottleneck] = {
    "SharedMemoryConflicts": Bottleneck.BANK_CONFLICTS,
    "UncoalescedSharedAccess": Bottleneck.BANK_CONFLICTS,
    "UncoalescedGlobalAccess": Bottleneck.COALESCING,
    "MemoryCacheAccessPattern": Bottleneck.COALESCING,
    "TheoreticalOccupancy": Bottleneck.OCCUPANCY,
    "AchievedOccupancy": Bottleneck.OCCUPANCY,
    "IssueSlotUtilization": Bottleneck.OCCUPANCY,
    "LaunchConfiguration": Bottleneck.SMALL_GRID,
    "WorkloadImbalance": Bottleneck.SMALL_GRID,
    "FPInstructions": Bottleneck.COMPUTE,
    "SlowPipeLimiter": Bottleneck.COMPUTE,
    "ThreadDivergence": Bottleneck.DIVERGENCE,
}
"""NVIDIA's rules whose advice can be acted on, and where the cookbook takes them up. CPIStall goes by its title."""

STALL_RULES: Mapping[str, Bottleneck] = {
    "barrier": Bottleneck.BARRIER,
    "mio throttle": Bottleneck.BANK_CONFLICTS,
    "short scoreboard": Bottleneck.BANK_CONFLICTS,
    "lg throttle": Bottleneck.COALESCING,
    "math pipe throttle": Bottleneck.COMPUTE,
}


def recommend(kernel: ProfiledKernel, findings: tuple[Diagnosis, ...]) -> tuple[Recommendation, ...]:
    """Ours for what was found, the bottleneck's first; NVIDIA's estimate where its rules see the same thing."""
    gains = rule_gains(kernel.rules)
    ours: list[Recommendation] = []
    for finding in ranked(findings):
        actions = _actions(kernel, finding.bottleneck)
        for number, action in enumerate(actions if finding is findings[0] else actions[:1]):
            ours.append(_ours(action, finding, gains, first=number == 0))
    named = {finding.bottleneck for finding in ranked(findings)}
    theirs = [_theirs(rule, bottleneck) for bottleneck, rule in gains.items() if bottleneck not in named]
    theirs = [one for one in theirs if (one.expected_gain_pct or 0.0) >= 5]
    theirs.sort(key=lambda one: -(one.expected_gain_pct or 0.0))
    # The bottleneck's two, then NVIDIA's best, then the rest.
    return tuple([*ours[:2], *theirs[:1], *ours[2:], *theirs[1:]][:MAX_RECOMMENDATIONS])


CHANGED: Mapping[str, Bottleneck] = {
    "local_instructions": Bottleneck.SPILLS,
    "bank_conflicts": Bottleneck.BANK_CONFLICTS,
    "shared_wavefronts": Bottleneck.BANK_CONFLICTS,
    "sectors_per_request": Bottleneck.COALESCING,
    "occupancy_pct": Bottleneck.OCCUPANCY,
    "launches": Bottleneck.LAUNCH,
    "dram_bytes": Bottleneck.DRAM,
    "l2_sectors": Bottleneck.L2,
    "load_requests": Bottleneck.L2,
    "stall_barrier": Bottleneck.BARRIER,
}
"""Where the cookbook takes up a figure that made a kernel slower."""

OWN_ADVICE: Mapping[str, str] = {
    "instructions": "compute-once",
    "stall_wait": "break-dependences",
    "async_copies": "copy-asynchronously",
}


def against_change(one: Contribution, kernel: ProfiledKernel) -> Recommendation | None:
    """What to try against a cause that made this kernel slower; None where nothing is known to help."""
    if one.metric == "grid":
        action = against(Bottleneck.SMALL_GRID)[0] if one.after < one.before else CATALOGUE["fewer-blocks"]
    elif one.metric in OWN_ADVICE:
        action = CATALOGUE[OWN_ADVICE[one.metric]]
    elif one.metric in CHANGED:
        again = one.metric == "dram_bytes" and one.because  # what L2 held before is read again
        action = _actions(kernel, Bottleneck.L2 if again else CHANGED[one.metric])[0]
    else:
        return None
    return Recommendation(action.name, action.words, cause(one), None, "kernelgate", action.link)


def _ours(action: Action, finding: Diagnosis, gains: Mapping[Bottleneck, Rule], first: bool) -> Recommendation:
    rule = gains.get(finding.bottleneck)
    gain = rule.speedup_pct if rule is not None else finding.gain_pct
    source = f"nvidia:{rule.identifier}" if rule is not None and first else "kernelgate"
    reason = "; ".join(finding.evidence[:2])
    return Recommendation(action.name, action.words, reason, _tidy(gain) if first else None, source, action.link)


def _theirs(rule: Rule, bottleneck: Bottleneck) -> Recommendation:
    sentences = rule.message.split(". ")
    telling = next((sentence for sentence in sentences if any(c.isdigit() for c in sentence)), sentences[0])
    action = against(bottleneck)[0]
    return Recommendation(
        name=action.name,
        action=action.words,
        reason=f"NVIDIA's rule {rule.title or rule.identifier}: {telling.rstrip('.')}",
        expected_gain_pct=_tidy(rule.speedup_pct),
        source=f"nvidia:{rule.identifier}",
        link=action.link,
    )


def rule_gains(rules: Iterable[Rule]) -> dict[Bottleneck, Rule]:
    """For each bottleneck, the rule that estimates the most of the kernel's time."""
    best: dict[Bottleneck, Rule] = {}
    for rule in rules:
        bottleneck = RULES.get(rule.identifier)
        if rule.identifier == "CPIStall":
            bottleneck = next((b for words, b in STALL_RULES.items() if rule.title.lower().startswith(words)), None)
        if bottleneck is None or not rule.whole_kernel or rule.speedup_pct is None:
            continue
        if bottleneck not in best or rule.speedup_pct > (best[bottleneck].speedup_pct or 0.0):
            best[bottleneck] = rule
    return best


def estimate(action: str, rules: Iterable[Rule]) -> float | None:
    """What NVIDIA's rules estimate, in percent of the kernel's time, for the first thing that an action is against."""
    gains, known = rule_gains(rules), CATALOGUE.get(action)
    return next((gains[one].speedup_pct for one in known.against if one in gains), None) if known else None


def _tidy(gain: float | None) -> float | None:
    return None if gain is None else round(max(0.0, min(99.0, gain)), 1)


def _actions(kernel: ProfiledKernel, bottleneck: Bottleneck) -> tuple[Action, ...]:
    """The two actions that are tried first, fitted to what limits this kernel."""
    known = against(bottleneck)
    return (_for_occupancy(kernel), known[1]) if bottleneck is Bottleneck.OCCUPANCY else known[:2]


def _for_occupancy(kernel: ProfiledKernel) -> Action:
    facts = Facts(kernel)
    threads = facts.get("block_threads")
    limit = limiter(kernel) or ""
    if limit.startswith("registers"):
        words = f"cut registers from {facts.get('registers'):.0f} per thread, by __launch_bounds__ or a smaller tile"
        return replace(CATALOGUE["fewer-registers"], words=words)
    if "shared memory" in limit:
        kib = facts.get("shared_bytes") / 1024
        words = f"cut shared memory from {kib:.0f} KiB per block: fewer stages, a smaller or narrower tile"
        return replace(CATALOGUE["less-shared-memory"], words=words)
    if limit and threads:
        words = f"change the block's size from {threads:.0f} threads, so that blocks fill the multiprocessor"
        return replace(CATALOGUE["other-block-size"], words=words)
    return CATALOGUE["more-warps"]
