"""Tries to pass a gate: runs the verbs that answer it on the working tree, and says what was seen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system import lock
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.explain import analyze, next_step
from kernelgate.ci.explain.analyze import Analysis
from kernelgate.ci.explain.diagnosis import WORDS
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.lab import beside_reference, expecting, folder, gates, watching
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import GateAttempt, GateName
from kernelgate.ci.lab.watching import Watch, Watched
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import thresholds

CLI = "kernelgate.ci.commands.cli"
NO_GPU = "this machine has no GPU to profile on"


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
    gate = next(one for one in gates.of(session.opened.template, policy) if one.name == name)
    if name == "profile" and session.opened.gpu in (None, "cpu"):
        return skip(name, NO_GPU)
    rules, expected = policy.session, expecting.seconds(name, session, root, sessions)
    watch = Watch(f"gate {name}", rules.report_s, rules.silent_s, gate.minutes * 60, expected)
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
    said = "; ".join(f"{one['name']}: {one['found']}{_fix(one)}" for one in failing)
    fit = f"fit to measure; {counted(warned, 'warning')} (`kernelgate doctor`)" if warned else "fit to measure"
    return _attempted("environment", done, said or fit, passed=not failing)


def _fix(check: Mapping[str, Any]) -> str:
    return f" → {check['fix']}" if check.get("fix") else ""


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


def _correctness(asked: _GateAsked) -> GateAttempt:
    return _with_library(asked, "correctness", _fuzzed)


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
    said = f"{check.run} of {check.asked} configurations right" if wrong is None else _wrong(check, wrong)
    passed = check.status == "passed"
    return _attempted("correctness", done, said, passed).model_copy(update={"figures": figures})


def _wrong(check: record.Check, wrong: record.FuzzResult) -> str:
    right = sum(one.passed for one in check.results)
    return f"{right} smaller configurations right, then {wrong.id}: {wrong.message}; repeat: {wrong.repeat}"


def _performance(asked: _GateAsked) -> GateAttempt:
    return _with_library(asked, "performance", _timed)


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
    figures = beside_reference.figures(measured, both) | {"reference_ms": reference_ms, "ours_ms": ours_ms}
    over = f", the mean of {len(both)} cases; of the first" if len(both) > 1 else ":"
    times = f"{figures['speedup']:.3g}x the reference{over} {ours_ms:.4g} ms against {reference_ms:.4g} ms"
    said = f"{times}; {_band(figures['speedup'], ours_ms, asked.policy)}"
    return _attempted("performance", done, said, passed=True).model_copy(update={"figures": figures})


def _band(speedup: float, ours_ms: float, policy: Policy) -> str:
    """Which of the bands of `kernelgate decide` it is, and what that advises."""
    step = next_step.decide(speedup, ours_ms, thresholds.bands(policy))
    advice = step.advice.partition(";")[0].rstrip(".")
    return f"{step.priority}: {advice[0].lower()}{advice[1:]}"


def _profile(asked: _GateAsked) -> GateAttempt:
    return _with_library(asked, "profile", _profiled)


def _profiled(asked: _GateAsked, library: Path) -> GateAttempt:
    out = asked.path("profile")
    done = asked.run("profile", "--alone", "--head-library", library, *asked.cases[:2], "--set", "full", "--out", out)
    reports = sorted(out.glob("*.ncu-rep"), key=lambda path: path.stat().st_mtime)
    if done.code != 0 or not reports:
        return _failed("profile", done)
    found = longest(analyze.analyze(reports[-1], thresholds.bottleneck_limits(asked.policy)))
    name = found.bottleneck.bottleneck
    said = f"{WORDS[name]} ({'; '.join(found.bottleneck.evidence)})"
    return _attempted("profile", done, said, passed=True).model_copy(update={"bottleneck": name.value})


def longest(analyses: Iterable[Analysis]) -> Analysis:
    """Of the launch that takes the most time."""
    return max(analyses, key=lambda one: one.kernel.figures.get("duration_us", 0.0))


def _with_library(asked: _GateAsked, name: GateName, then: Callable[[_GateAsked, Path], GateAttempt]) -> GateAttempt:
    """Of the working tree as it is now, which may be another than at the build gate."""
    done, library = _built(asked)
    if library is None:
        return _failed(name, done)
    made = then(asked, library)
    silent = max(made.silent_s or 0.0, done.silent_s or 0.0) or None
    return made.model_copy(update={"seconds": (made.seconds or 0.0) + round(done.seconds, 1), "silent_s": silent})


def _attempted(name: GateName, done: Watched, said: str, passed: bool) -> GateAttempt:
    return GateAttempt(gate=name, passed=passed, seconds=round(done.seconds, 1), said=said, silent_s=done.silent_s)


def _failed(name: GateName, done: Watched) -> GateAttempt:
    return _attempted(name, done, done.ended or done.last.removeprefix("kernelgate: "), passed=False)


def _document(asked: _GateAsked) -> GateAttempt:
    raise KernelgateError(f"the report is written by `kernelgate session close --session {asked.session.name}`")


_ATTEMPTS: Mapping[GateName, Callable[[_GateAsked], GateAttempt]] = {
    "environment": _environment,
    "build": _build,
    "correctness": _correctness,
    "performance": _performance,
    "profile": _profile,
    "document": _document,
}
