"""`kernelgate session gate`: runs the commands that answer a gate on the working tree, and logs what was seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from pathlib import Path
from statistics import fmean, median, stdev

from kernelgate.bench import record
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.kernel import cards as bench_cards
from kernelgate.bench.kernel.card import DeviceKind
from kernelgate.bench.record import RunRecord
from kernelgate.bench.system import lock
from kernelgate.bench.system.progress import say
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.explain import analyze, next_step
from kernelgate.ci.judge import cards
from kernelgate.ci.judge.case import CaseVerdict
from kernelgate.ci.judge.stats import student_half_width
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.lab import advice, folder, watching
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import GateAttempt, GateName
from kernelgate.ci.lab.patterns import findings
from kernelgate.ci.lab.state import due, gate_states, state_of
from kernelgate.ci.lab.watching import Watch
from kernelgate.ci.policy.policy import Policy


def run(
    session: Session, root: Path, policy: Policy, asked: str | None, skipped: str | None
) -> tuple[GateAttempt, ...]:
    """The attempts at the gate `asked`; without one, at all that are open, to the first that fails. Raises UsageError
    for a gate that this kind of session has not, for one whose turn has not come, and where correctness is to be
    skipped."""
    made: list[GateAttempt] = []
    if skipped and asked == "correctness":
        raise UsageError(
            "correctness cannot be skipped, for a wrong result has no speed: `kernelgate session gate correctness`"
        )
    with folder.alone(session):
        name = _named(session, asked) if asked is not None else _due(session, policy)
        while name is not None:
            one = skip(name, skipped) if skipped else attempt(session, root, policy, name)
            folder.append(session.folder, one)
            session = folder.read(session.folder)
            made.append(one)
            say(f"{name}: {'' if one.skipped else 'passed: ' if one.passed else 'FAILED: '}{one.said}")
            name = _due(session, policy) if asked is None and one.passed else None
    return tuple(made)


def _named(session: Session, asked: str) -> GateName:
    """The gate, whose earlier ones are passed."""
    status = {gate.name: gate.status for gate in gate_states(session.events) if gate.name != "document"}
    for name, one in status.items():
        if name == asked:
            return name
        if asked in status and one in ("open", "failed"):
            raise UsageError(f"{name} comes before {asked}: `kernelgate session gate {name}`")
    raise UsageError(f"a session of the kind {session.opened.template} has no gate {asked}; it has {', '.join(status)}")


def _due(session: Session, policy: Policy) -> GateName | None:
    state = state_of(session.events, policy, folder.now())
    return None if state.stop else due(state.gates, state.figures.speedup_before)


class GateFailedError(Exception):
    """What was seen, where a gate's command could not answer."""


@dataclass
class TriedGate:
    """A gate that is tried: it runs commands, and keeps how long they took."""

    session: Session
    root: Path
    policy: Policy
    watch: Watch
    seconds: float = 0.0
    device_s: float = 0.0
    silent_s: float = 0.0

    def run(self, *words: str | Path, answers: Sequence[int] = (0,)) -> None:
        """Raises GateFailedError where the command ended with a code that is none of its answers."""
        done = watching.run("kernelgate.ci.commands.cli", list(map(str, words)), self.root, self.watch)
        self.seconds += done.seconds
        self.device_s += done.device_s
        self.silent_s = max(self.silent_s, done.silent_s or 0.0)
        if done.code not in answers:
            raise GateFailedError(done.why)

    @property
    def card(self) -> str:
        return self.session.opened.card or ""

    @property
    def cases(self) -> tuple[str, ...]:
        """The options that name the session's cases."""
        return tuple(word for case in self.session.opened.cases for word in ("--case", f"{self.card}/{case}"))

    def library(self) -> Path:
        """Of the working tree as it is now, which may be another than at the build gate."""
        out = self.session.work / "library"
        self.run("build", "--output", out)
        if not (out / self.card).exists():
            raise GateFailedError(f"{self.card} has no library")
        return out / self.card


def attempt(session: Session, root: Path, policy: Policy, name: GateName) -> GateAttempt:
    if name == "profile" and not session.opened.on_gpu:
        return skip(name, "this machine has no GPU to profile on")
    minutes = next(one.limit_minutes for one in gate_states(session.events) if one.name == name)
    expected = watching.expected_seconds(name, session, folder.every(root))
    gate = TriedGate(session, root, policy, Watch(f"gate {name}", total_s=minutes * 60, expected_s=expected))
    try:
        seen = {"passed": True, **_ATTEMPTS[name](gate)}
    except GateFailedError as error:
        seen = {"passed": False, "said": str(error)}
    seen |= {"seconds": round(gate.seconds, 1), "gpu_seconds": gate.device_s if session.opened.on_gpu else None}
    seen |= {"silent_s": gate.silent_s or None, "machine": lock.boot_identity()}
    return GateAttempt.model_validate({"at": folder.now(), "gate": name, **seen})


def skip(name: GateName, why: str) -> GateAttempt:
    return GateAttempt(at=folder.now(), gate=name, passed=True, said=f"skipped: {why}", skipped=why)


# ---- the gates: what each sees, as the fields of its attempt; it is passed where nothing else is said ----------------


def _environment(gate: TriedGate) -> dict[str, object]:
    path = gate.session.work / "doctor.json"
    gate.run("doctor", "--output", path, answers=(0, 1))
    found = findings(path)
    failing = [f"{one.name}: {one.found}{f' → {one.fix}' if one.fix else ''}" for one in found if one.failed]
    fit = f"fit to measure; {counted(len(found), 'warning')} (`kernelgate doctor`)" if found else "fit to measure"
    shared = [f"{one.name}: {one.found}" for one in found if one.name == lock.CHECK]
    return {"passed": not failing, "said": "; ".join([*(failing or [fit]), *shared])}


def _build(gate: TriedGate) -> dict[str, object]:
    gate.library()
    return {"said": f"{gate.card} compiles, in {gate.seconds:.0f} s"}


def _correctness(gate: TriedGate) -> dict[str, object]:
    path = gate.session.work / "fuzz.json"
    gate.run("fuzz", "--smallest-first", "--library", gate.library(), "--output", path, answers=(0, 1))
    check = record.read(path).checks[0]
    errors = [one.max_abs_error for one in check.results if one.max_abs_error is not None]
    figures = {"trials": check.run or 0, "failed": check.failed or 0} | ({"error_max": max(errors)} if errors else {})
    wrong = next((one for one in check.results if not one.passed), None)
    said = f"{check.run} of {check.asked} configurations right"
    if wrong is not None:
        right = sum(one.passed for one in check.results)
        said = f"{right} smaller configurations right, then {wrong.id}: {wrong.message}; repeat: {wrong.repeat}"
    return {"passed": check.status == "passed", "said": said, "figures": figures}


def _performance(gate: TriedGate) -> dict[str, object]:
    path = gate.session.work / "performance.json"
    kind: DeviceKind = "cuda" if gate.session.opened.on_gpu else "cpu"
    known = bench_cards.of_checkout(gate.root)[gate.card]
    small = bench_cards.smallest(known, kind).case.id  # a head alone is timed from the smallest to the largest
    asked = gate.session.opened.cases or [one.id for one in known.suites[bench_cards.DEFAULT_SUITES[kind]]]
    words = [word for one in dict.fromkeys([*asked, small]) for word in ("--case", f"{gate.card}/{one}")]
    gate.run("bench", "--alone", "--head-library", gate.library(), *words, "--output", path)
    measured = record.read(path)
    verdict = judge(measured, gate.policy, name=str(path))
    timed = [one for one in verdict.cases if one.reference_us and one.head_us]
    both = [one for one in timed if one.id in asked]
    if not both:
        raise GateFailedError(f"nothing beside the reference: {verdict.reason}")
    reference_ms, ours_ms = (both[0].reference_us or 0) / 1000, (both[0].head_us or 0) / 1000
    figures = beside_reference(measured, both) | {"reference_ms": reference_ms, "ours_ms": ours_ms}
    over = f", the mean of {len(both)} cases; of the first" if len(both) > 1 else ":"
    times = f"{figures['speedup']:.3g}x the reference{over} {ours_ms:.4g} ms against {reference_ms:.4g} ms"
    for one in (one for one in timed if one.id == small and one not in both):
        figures["smallest_speedup"] = beside_reference(measured, [one])["speedup"]
        times += f"; {small}, mostly launch and prologue, {figures['smallest_speedup']:.3g}x"
    step = next_step.decide(figures["speedup"], ours_ms, gate.policy.gates.reference_min)  # as `kernelgate decide`
    to_do = step.advice.partition(";")[0].rstrip(".")
    return {"said": f"{times}; {step.priority}: {to_do[0].lower()}{to_do[1:]}", "figures": figures}


def _profile(gate: TriedGate) -> dict[str, object]:
    out = gate.session.work / "profile"
    gate.run("profile", "--alone", "--head-library", gate.library(), *gate.cases[:2], "--set", "full", "--out", out)
    report = advice.newest(out, "*.ncu-rep")
    if report is None:
        raise GateFailedError("the profiler left no report")
    found = advice.longest(analyze.analyze(report)).bottleneck
    said = f"{found.bottleneck.words} ({'; '.join(found.evidence)})"
    return {"said": said, "bottleneck": found.bottleneck.value}


_ATTEMPTS: Mapping[str, Callable[[TriedGate], dict[str, object]]] = {
    "environment": _environment,
    "build": _build,
    "correctness": _correctness,
    "performance": _performance,
    "profile": _profile,
}


def beside_reference(measured: RunRecord, both: Sequence[CaseVerdict]) -> dict[str, float]:
    """`speedup`, the geometric mean over `both`, cases with the times of kernel and reference; and the ends of its
    interval, where each case was timed in more than one process: by Student's t from the processes' own ratios, cases
    taken as independent."""
    speedup = exp(fmean(log(one.reference_us / one.head_us) for one in both if one.reference_us and one.head_us))
    wanted = {(one.card, one.id) for one in both}
    reaches = []  # half of each case's interval, of the logarithm
    for case in cards.compared(measured):
        times = [one.samples_us for one in case.processes if (case.case.card, case.case.id) in wanted]
        timed = [(one.get("reference"), one.get("head")) for one in times]
        logs = [log(median(reference) / median(head)) for reference, head in timed if reference and head]
        if len(logs) > 1:
            reaches.append(student_half_width(len(logs) - 1) * stdev(logs) / sqrt(len(logs)))
    if len(reaches) < len(both):
        return {"speedup": speedup}
    reach = sqrt(sum(one**2 for one in reaches)) / len(reaches)
    return {"speedup": speedup, "speedup_low": speedup * exp(-reach), "speedup_high": speedup * exp(reach)}
