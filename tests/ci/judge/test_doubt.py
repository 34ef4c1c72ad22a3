"""What a head could do to escape a verdict is held; beside each such doubt stands the honest case that passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from kernelgate.bench.record import Calls, Check, Device, Environment, Expected, Note, Run, RunRecord, Telemetry, Work
from kernelgate.ci.judge import gate
from kernelgate.ci.judge.gate import Decision, decide
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Gates, Policy
from tests import runs
from tests.ci.records import Samples, case, heads, noise, paired_record
from tests.runs import process, run_record

POLICY = Policy()
COMPARED = {"base": Calls(compared=3), "head": Calls(compared=3)}
ALONE = Note(code="head_alone", text="the base does not compile")
STEPS, NOISY = 100 + np.arange(12) / 100, 100 * np.exp(np.random.default_rng(3).normal(0, 0.3, (2, 12)))
TICKS = np.resize([100.0, 110.0], 60)
"""Of a clock whose step is a tenth of the times."""


def decided(made: RunRecord, policy: Policy = POLICY) -> Decision:
    evidence = gate.evidence("l4", made, judge(made, policy), policy)
    return decide([evidence], hold=policy.gates.doubt == "hold")


def sides(change: float = 0.0, processes: int = 5, spread: float = 0.001) -> tuple[Samples, Samples]:
    return noise(np.random.default_rng(11), change, processes, spread=spread)


def paired(change: float = 0.0, processes: int = 5, spread: float = 0.001) -> RunRecord:
    return paired_record(*sides(change, processes, spread))


def jumping(side: int) -> RunRecord:
    rng, both = np.random.default_rng(1), sides()
    for samples in both[side]:
        samples[rng.random(len(samples)) < 0.4] *= 1.09
    return paired_record(*both)


def drifting(side: int, role: str = "alternating") -> RunRecord:
    both = [list(one) for one in sides()]
    both[side] = [one * np.linspace(0.9, 1.1, len(one)) for one in both[side]]
    return paired_record(*both, role=role)  # type: ignore[arg-type]


def wandering(change: float) -> RunRecord:
    """By 60% up in one process, and down in the next."""
    base, head = sides(change)
    ends = [np.linspace(0.7, 1.3, len(one))[:: 1 if at % 2 else -1] for at, one in enumerate(head)]
    return paired_record(base, [one * end for one, end in zip(head, ends, strict=True)])


def alternating(*factors: tuple[float, float]) -> RunRecord:
    """Each process of base and head this many times as slow."""
    base, head = sides(processes=len(factors))
    pairs = zip(base, head, factors, strict=True)
    return paired_record(*zip(*((b * of[0], h * of[1]) for b, h, of in pairs), strict=True))


def impossible(base: float, head: float) -> RunRecord:
    """Of 10 GFLOP, for which an H200 takes 10 µs at least."""
    device = Environment(id="0", device=Device(name="NVIDIA H200", compute_capability="9.0", driver="1"))
    both = noise(np.random.default_rng(2), spread=0.001)
    processes = [process({"base": b * base, "head": h * head}) for b, h in zip(*both, strict=True)]
    return run_record((runs.case("one", processes, work=Work(flops=10**10)),), device)


def wrong_base(alone: bool, failed: int = 3, change: float = 0) -> RunRecord:
    bad = {"base": Calls(compared=3, failed=failed), "head": Calls(compared=3)}
    processes = [process({"base": b, "head": h}, calls=bad) for b, h in zip(*sides(change), strict=True)]
    both = {"base": [100.0, 100.1], "head": [100.0, 100.1]}
    seen = process(both, "witness", calls=bad if alone else COMPARED)
    return run_record((runs.case("one", [*processes, seen]),))


def witnessed(change: float, base: Sequence[float], head: Sequence[float]) -> RunRecord:
    """A gain, and what the witness timed."""
    seen = process({"base": base, "head": head}, "witness")
    timed = case(*sides(change))
    return run_record((replace(timed, processes=(*timed.processes, seen)),))


def checked(*checks: Check, **parts: object) -> RunRecord:
    """What was planned with compute-sanitizer and a witness, which says the same."""
    base, head = sides()
    processes = [process({"base": b, "head": h}, calls=COMPARED) for b, h in zip(base, head, strict=True)]
    alone = noise(np.random.default_rng(12), spread=0.001)
    seen = process({"base": alone[0][0], "head": alone[1][0]}, "witness", calls=COMPARED)
    made = run_record((runs.case("one", [*processes, seen]),))
    asked = Expected(cases=made.cases, checks=("sanitizer", "witness"), processes=2)
    return made.model_copy(update={"expected": asked, "checks": checks, **parts})


def tool(**facts: object) -> Check:
    return Check.model_validate({"kind": "sanitizer", "status": "passed", "asked": 2, "run": 2} | facts)


def by_turns(**telemetry: object) -> RunRecord:
    """Base and head in processes of their own, of which the device tells this much in all but the first."""
    told = Telemetry.model_validate(telemetry)
    both = [
        process({"base": b, "head": h}, "block", telemetry=told if at > 0 else Telemetry(sm_mhz=1900))
        for at, (b, h) in enumerate(zip(*sides(processes=3), strict=True))
    ]
    return run_record((runs.case("one", both),))


HELD: dict[str, tuple[Callable[[], RunRecord], str]] = {
    "slower after two processes": (lambda: paired(0.3, 2), "likely_slower"),
    "head has two speeds": (lambda: jumping(1), "bimodal"),
    "head drifts": (lambda: drifting(1), "drift"),
    "head drifts against base": (lambda: drifting(1, "paired"), "drift"),
    "head alternates": (lambda: alternating((1, 1), (1, 1.3), (1, 1), (1, 1.3)), "processes_disagree"),
    "each process past the gate": (lambda: alternating((1, 1.3), (1.5, 2.2), (1, 1.3)), "lone_process"),
    "head wanders about a change": (lambda: wandering(0.02), "drift"),
    "head faster than its arithmetic": (lambda: impossible(1.0, 0.01), "below_floor"),
    "base wrong beside the head": (lambda: wrong_base(alone=False), "base_wrong"),
    "slower than a base that is wrong at times": (lambda: wrong_base(True, 1, 0.3), "base_wrong"),
    "contradicted by the witness": (lambda: witnessed(-0.3, STEPS, STEPS[::-1]), "witness_contradicts"),
    "an impossible time": (lambda: paired_record([np.full(30, 1e-9)] * 3, [np.full(30, 1e-9)] * 3), "refused"),
    "pasted processes": (lambda: paired_record([sides()[0][0]] * 3, [sides()[1][0]] * 3), "refused"),
    "compute-sanitizer cut short": (lambda: checked(tool(run=1, reason="It hung.")), "incomplete"),
    "compute-sanitizer left out": (checked, "incomplete"),
    "ended early": (lambda: checked(tool(), run=Run(ended="failed")), "incomplete"),
    "without a base": (lambda: heads(sides()[1]), "head_alone"),
}  # fmt: skip


@pytest.mark.parametrize("name", HELD)
def test_a_doubt_that_the_head_may_cause_holds(name: str) -> None:
    make, code = HELD[name]
    made = make()
    found = decided(made)
    assert (found.conclusion, found.label, found.held[0].code, found.held[0].cause) == (
        "action_required", None, code, "head",
    )  # fmt: skip
    lets = Policy(gates=Gates(doubt="pass"))
    assert (decided(made, lets).conclusion, decided(made, lets).held) == ("neutral", ())


NEUTRAL: dict[str, Callable[[], RunRecord]] = {
    "slower within the gate": lambda: paired(0.02),
    "very likely faster": lambda: alternating((1, 0.87), (1, 0.876)),
    "noise": lambda: paired(spread=0.15),
    "too few rounds": lambda: paired(processes=1),
    "base has two speeds": lambda: jumping(0),
    "base drifts": lambda: drifting(0),
    "base and head alternate": lambda: alternating((1, 1), (1.25, 1.2), (1, 1), (1.25, 1.2)),
    "base as impossible as the head": lambda: impossible(0.02, 0.01),
    "base wrong alone, too": lambda: wrong_base(alone=True),
    "slower than a base that is never right": lambda: wrong_base(True, change=0.3),
    "a machine without compute-sanitizer": lambda: checked(tool(status="skipped", run=None, reason="No tool.")),
    "a base that does not compile": lambda: heads(sides()[1]).model_copy(update={"notes": (ALONE,)}),
    "a gain that the witness does not see": lambda: witnessed(-0.2, *NOISY),
    "a coarse clock": lambda: paired_record([TICKS] * 5, [TICKS[::-1]] * 5),
    "another clock": lambda: by_turns(sm_mhz=1500),
    "throttled": lambda: by_turns(sm_mhz=1500, max_sm_mhz=1980, throttle_reasons=("hw_slowdown",)),
}


@pytest.mark.parametrize("name", NEUTRAL)
def test_what_no_head_causes_is_said_and_does_not_hold(name: str) -> None:
    found = decided(NEUTRAL[name]())
    assert (found.conclusion, found.label, found.held) == ("neutral", None, ())


@pytest.mark.parametrize(("name", "again"), [("base has two speeds", True), ("very likely faster", False)])
def test_only_what_spoils_a_record_is_measured_again(name: str, again: bool) -> None:
    made = NEUTRAL[name]()
    found = decide([gate.evidence("l4", made, judge(made, POLICY), POLICY)], again=True)
    assert (found.again, bool(found.held)) == (again, again)
