"""`kernelgate session gate`: runs the commands that answer a gate on the working tree, and logs what was seen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from pathlib import Path
from statistics import fmean, median, stdev

from kernelgate.bench import record
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.record import RunRecord
from kernelgate.bench.system import lock
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.explain import analyze, next_step
from kernelgate.ci.judge import cards
from kernelgate.ci.judge.case import CaseVerdict
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.lab import coming, folder, profiled, steps, watching
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import GateAttempt, GateName
from kernelgate.ci.lab.state import gate_states
from kernelgate.ci.lab.watching import Watch, Watched
from kernelgate.ci.policy.policy import Policy

CLI = "kernelgate.ci.commands.cli"
NO_GPU = "this machine has no GPU to profile on"
LEVEL = 0.95
"""Of the interval of how many times as fast as the reference."""


def run(
    session: Session, root: Path, policy: Policy, asked: str | None, skipped: str | None, say: Callable[[str], None]
) -> tuple[GateAttempt, ...]:
    """The attempts at the gate `asked`; without one, at all that are open, to the first that fails.

    Raises UsageError for a gate that this kind of session has not, and for one whose turn has not come.
    """
    made: list[GateAttempt] = []
    with steps.alone(session):
        name = _named(session, policy, asked) if asked is not None else _due(session, policy)
        while name is not None:
            one = skip(name, skipped) if skipped else attempt(session, root, policy, name, folder.every(root))
            folder.append(session.folder, one)
            session = folder.read(session.folder)
            made.append(one)
            say(f"{name}: {attempt_words(one)}")
            name = _due(session, policy) if asked is None and one.passed else None
    return tuple(made)


def attempt_words(made: GateAttempt) -> str:
    return made.said if made.skipped else f"{'passed' if made.passed else 'FAILED'}: {made.said}"


def _named(session: Session, policy: Policy, asked: str) -> GateName:
    """The gate, whose earlier ones are passed."""
    state = coming.of(session.events, policy, folder.now())
    order = [gate.name for gate in state.gates if gate.name != "document"]
    if asked not in order:
        raise UsageError(
            f"a session of the kind {session.opened.template} has no gate {asked}; it has {', '.join(order)}"
        )
    at = order.index(asked)
    before = next((gate.name for gate in state.gates[:at] if gate.status in ("open", "failed")), None)
    if before is not None:
        raise UsageError(f"{before} comes before {asked}: `kernelgate session gate {before}`")
    return order[at]


def _due(session: Session, policy: Policy) -> GateName | None:
    state = coming.of(session.events, policy, folder.now())
    return None if state.stop else coming.due(state.gates, state.figures.speedup_before)


@dataclass(frozen=True)
class _GateAsked:
    """A gate that is to be tried."""

    session: Session
    root: Path
    policy: Policy
    watch: Watch

    def path(self, name: str) -> Path:
        return self.session.folder / folder.WORK / name

    def run(self, *words: str | Path) -> Watched:
        return watching.run(CLI, list(map(str, words)), self.root, self.watch)

    @property
    def card(self) -> str:
        return self.session.opened.card or ""

    @property
    def cases(self) -> tuple[str, ...]:
        """The options that name the session's cases."""
        return tuple(word for case in self.session.opened.cases for word in ("--case", f"{self.card}/{case}"))


def attempt(session: Session, root: Path, policy: Policy, name: GateName, sessions: Iterable[Session]) -> GateAttempt:
    """One attempt at a gate. `sessions`: whose times say how long it may be expected to take."""
    if name == "profile" and session.opened.gpu in (None, "cpu"):
        return skip(name, NO_GPU)
    minutes = next(one.limit_minutes for one in gate_states(session.events) if one.name == name)
    expected = watching.expected_seconds(name, session, root, sessions)
    watch = Watch(f"gate {name}", watching.REPORT_S, watching.SESSION_SILENT_S, minutes * 60, expected)
    made = _ATTEMPTS[name](_GateAsked(session, root, policy, watch))
    return made.model_copy(update={"at": folder.now(), "machine": lock.boot_identity()})


def skip(name: GateName, why: str) -> GateAttempt:
    """A gate that is passed without being tried."""
    return GateAttempt(at=folder.now(), gate=name, passed=True, said=f"skipped: {why}", skipped=why)


# ---- the gates -------------------------------------------------------------------------------------------------------


def _environment(asked: _GateAsked) -> GateAttempt:
    path = asked.path("doctor.json")
    done = asked.run("doctor", "--output", path)
    if done.code not in (0, 1):
        return _failed("environment", done)
    checks = json.loads(path.read_text(encoding="utf-8"))["checks"]
    failing = [check for check in checks if check["level"] == "failed"]
    warned = sum(check["level"] == "warning" for check in checks)
    fixes = [f" → {one['fix']}" if one.get("fix") else "" for one in failing]
    said = "; ".join(f"{one['name']}: {one['found']}{fix}" for one, fix in zip(failing, fixes, strict=True))
    fit = f"fit to measure; {counted(warned, 'warning')} (`kernelgate doctor`)" if warned else "fit to measure"
    return _attempted("environment", done, said or fit, passed=not failing)


def _build(asked: _GateAsked) -> GateAttempt:
    done, library = _built(asked)
    if library is None:
        return _failed("build", done)
    said = f"{asked.card} compiles, in {done.seconds:.0f} s"
    return _attempted("build", done, said, passed=True)


def _built(asked: _GateAsked) -> tuple[Watched, Path | None]:
    """The working tree's library of the session's card; None where there is none."""
    out = asked.path("library")
    done = asked.run("build", "--output", out)
    library = out / asked.card
    return done, library if done.code == 0 and library.exists() else None


def _fuzzed(asked: _GateAsked, library: Path) -> GateAttempt:
    path = asked.path("fuzz.json")
    done = asked.run("fuzz", "--smallest-first", "--library", library, "--output", path)
    if done.code not in (0, 1) or not path.exists():
        return _failed("correctness", done)
    check = record.read(path).checks[0]
    errors = [one.max_abs_error for one in check.results if one.max_abs_error is not None]
    figures = {"trials": float(check.run or 0), "failed": float(check.failed or 0)}
    figures |= {"error_max": max(errors)} if errors else {}
    wrong = next((one for one in check.results if not one.passed), None)
    said = f"{check.run} of {check.asked} configurations right"
    if wrong is not None:
        right = sum(one.passed for one in check.results)
        said = f"{right} smaller configurations right, then {wrong.id}: {wrong.message}; repeat: {wrong.repeat}"
    passed = check.status == "passed"
    return _attempted("correctness", done, said, passed).model_copy(update={"figures": figures})


def _timed(asked: _GateAsked, library: Path) -> GateAttempt:
    path = asked.path("performance.json")
    done = asked.run("bench", "--alone", "--head-library", library, *asked.cases, "--output", path)
    if done.code != 0:
        return _failed("performance", done)
    measured = record.read(path)
    verdict = judge(measured, asked.policy, name=str(path))
    both = [one for one in verdict.cases if one.reference_us and one.head_us]
    if not both:
        return _attempted("performance", done, f"nothing beside the reference: {verdict.reason}", passed=False)
    reference_ms, ours_ms = (both[0].reference_us or 0) / 1000, (both[0].head_us or 0) / 1000
    figures = beside_reference(measured, both) | {"reference_ms": reference_ms, "ours_ms": ours_ms}
    over = f", the mean of {len(both)} cases; of the first" if len(both) > 1 else ":"
    times = f"{figures['speedup']:.3g}x the reference{over} {ours_ms:.4g} ms against {reference_ms:.4g} ms"
    bands = next_step.Bands(asked.policy.gates.reference_min, asked.policy.guidance.target)
    step = next_step.decide(figures["speedup"], ours_ms, bands)  # as `kernelgate decide`
    advice = step.advice.partition(";")[0].rstrip(".")
    said = f"{times}; {step.priority}: {advice[0].lower()}{advice[1:]}"
    return _attempted("performance", done, said, passed=True).model_copy(update={"figures": figures})


def _profiled(asked: _GateAsked, library: Path) -> GateAttempt:
    out = asked.path("profile")
    done = asked.run("profile", "--alone", "--head-library", library, *asked.cases[:2], "--set", "full", "--out", out)
    reports = sorted(out.glob("*.ncu-rep"), key=lambda path: path.stat().st_mtime)
    if done.code != 0 or not reports:
        return _failed("profile", done)
    found = profiled.longest(analyze.analyze(reports[-1]))
    name = found.bottleneck.bottleneck
    said = f"{name.words} ({'; '.join(found.bottleneck.evidence)})"
    return _attempted("profile", done, said, passed=True).model_copy(update={"bottleneck": name.value})


def _with_library(
    name: GateName, then: Callable[[_GateAsked, Path], GateAttempt]
) -> Callable[[_GateAsked], GateAttempt]:
    """Of the working tree as it is now, which may be another than at the build gate."""

    def attempted(asked: _GateAsked) -> GateAttempt:
        done, library = _built(asked)
        if library is None:
            return _failed(name, done)
        made = then(asked, library)
        silent = max(made.silent_s or 0.0, done.silent_s or 0.0) or None
        return made.model_copy(update={"seconds": (made.seconds or 0.0) + round(done.seconds, 1), "silent_s": silent})

    return attempted


def _attempted(name: GateName, done: Watched, said: str, passed: bool) -> GateAttempt:
    return GateAttempt(gate=name, passed=passed, seconds=round(done.seconds, 1), said=said, silent_s=done.silent_s)


def _failed(name: GateName, done: Watched) -> GateAttempt:
    return _attempted(name, done, done.ended or done.last.removeprefix("kernelgate: "), passed=False)


_ATTEMPTS: Mapping[GateName, Callable[[_GateAsked], GateAttempt]] = {
    "environment": _environment,
    "build": _build,
    "correctness": _with_library("correctness", _fuzzed),
    "performance": _with_library("performance", _timed),
    "profile": _with_library("profile", _profiled),
}


def beside_reference(measured: RunRecord, both: Sequence[CaseVerdict]) -> dict[str, float]:
    """`speedup`, the geometric mean over `both`, cases with the times of kernel and reference; and the ends of its
    interval, where each case was timed in more than one process: by Student's t from the processes' own ratios, cases
    taken as independent.
    """
    ratios = [one.reference_us / one.head_us for one in both if one.reference_us and one.head_us]
    speedup = exp(fmean(map(log, ratios)))
    reaches = _reaches(measured, {(one.card, one.id) for one in both})
    if len(reaches) < len(ratios):
        return {"speedup": speedup}
    reach = sqrt(sum(one**2 for one in reaches)) / len(reaches)
    return {"speedup": speedup, "speedup_low": speedup * exp(-reach), "speedup_high": speedup * exp(reach)}


def _reaches(measured: RunRecord, wanted: set[tuple[str, str]]) -> list[float]:
    """Half of each case's interval, of the logarithm."""
    from scipy.special import stdtrit

    found = []
    for case in cards.compared(measured):
        times = [one.samples_us for one in case.processes if (case.case.card, case.id) in wanted]
        logs = [
            log(median(one["reference"]) / median(one["head"]))
            for one in times
            if one.get("reference") and one.get("head")
        ]
        if len(logs) > 1:
            found.append(float(stdtrit(len(logs) - 1, (1 + LEVEL) / 2)) * stdev(logs) / sqrt(len(logs)))
    return found
