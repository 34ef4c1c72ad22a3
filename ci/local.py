"""`kernelgate pr`: builds base and head, fuzzes, times, judges, and writes the comment, all on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.errors import CompileError, RecordError
from kernelgate.bench.record import CaseKey, RunRecord
from kernelgate.bench.system.progress import say
from kernelgate.ci.document import render
from kernelgate.ci.judge import gate
from kernelgate.ci.judge.early_stop import decided
from kernelgate.ci.judge.gate import Decision, Fault, GpuEvidence
from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.report.build import build
from kernelgate.ci.report.gpu import Failure, GpuReport, of_record

RECORD = "run.json"
COMMENT = "comment.md"
PAGE = "page.html"
LOG_LINES = 40
"""As much of a compiler's log as a reader can use."""


@dataclass(frozen=True)
class LocalResult:
    comment: str
    first_line: str
    """The verdict, for a terminal."""
    decision: Decision
    """Of the gate, which does not know the pull request's description here."""


def run(repo: Path, base: str | None, out: Path, policy: Policy) -> LocalResult:
    """Does everything that a pull request gets, and leaves run.json, comment.md and page.html in `out`.

    The head is the working tree; without `base`, the base is the commit where the branch left the default branch.
    Raises KernelgateError where nothing can be found out about the change.
    """
    from kernelgate.bench import run as verbs

    path = out / RECORD
    for name in (RECORD, COMMENT, PAGE):
        (out / name).unlink(missing_ok=True)
    say("1/3 build")
    try:
        verbs.library(repo, None, None)
    except CompileError as error:
        failure = _does_not_compile(error)
        part = GpuReport(failure=failure)
        return _written(part, GpuEvidence("", fault=failure.fault), policy, out)
    measured = _measure(repo, base, path, policy)
    record.write(measured, path)
    verdict = judge(measured, policy, name=str(path))
    stored = stored_baseline(repo / ".ci", measured)
    against = judge(measured, policy, stored[1], str(path), against=stored[0]) if stored else None
    part = of_record("", measured, verdict, against)
    return _written(part, gate.evidence("", measured, verdict, policy.static), policy, out)


def _measure(repo: Path, base: str | None, path: Path, policy: Policy) -> RunRecord:
    """The record of base against head. A head with wrong results is not timed."""
    from kernelgate.bench import run as verbs
    from kernelgate.bench import subject
    from kernelgate.bench.check import fuzz
    from kernelgate.bench.explain import causes
    from kernelgate.bench.kernel import case_list
    from kernelgate.bench.system import environment
    from kernelgate.bench.timing import paired

    timed = verbs.sides(repo, base, None, None, None, alone=False)
    machine = environment.describe()
    say(f"2/3 fuzz, on {machine.device.name}")
    seed = verbs.new_seed()
    fuzzed = fuzz.run(timed.head, seed, machine)
    begun = RunRecord(run=subject.describe(timed.base, timed.head), environments=(machine,), checks=(fuzzed,))
    timed_cases = case_list.select(environment.kind(machine), None, ())
    plan = paired.PairedPlan(timed.base, timed.head, timed_cases, machine, seed)
    if fuzzed.status == "failed":
        say("wrong results: speed is not measured")
        return begun.model_copy(update={"builds": paired.builds(plan)})
    say("3/3 bench")
    measured = paired.run(plan, begun, path, lambda grown: decided(grown, policy))
    cases = [] if environment.kind(machine) == "cpu" else [case_list.TARGET.id]
    how = policy.profiling
    options = causes.profiling(path.parent / "profile", how.clock_control, how.timeout_s)
    return causes.add(measured, timed, cases, options)


def written(out: Path) -> list[str]:
    """What a run has left in `out`."""
    return [name for name in (RECORD, COMMENT, PAGE) if (out / name).exists()]


def stored_baseline(folder: Path, measured: RunRecord) -> tuple[str, RunRecord] | None:
    """The stored baseline of this kind of device with a case of this record, and its name; None where there is none."""
    # A baseline of run/1 names no card.
    keys = {key for case in measured.cases for key in (case.key, CaseKey("", case.id))}
    device = measured.environment.device.name
    found = (
        (path.name, baseline)
        for path, baseline in _baselines(folder)
        if device and baseline.environment.device.name == device and keys & {case.key for case in baseline.cases}
    )
    return next(found, None)


def _baselines(folder: Path) -> Iterator[tuple[Path, RunRecord]]:
    for path in sorted(folder.glob("baseline_*.json")):
        try:
            yield path, record.read(path)
        except RecordError as error:
            say(f"left out: {error}")


def _does_not_compile(error: CompileError) -> Failure:
    log = error.log.read_text(encoding="utf-8", errors="replace").splitlines()
    first = next((index for index, line in enumerate(log) if "error" in line), 0)
    return Failure(Fault.BUILD, error.first, error.target, tuple(log[first : first + LOG_LINES]))


def _written(part: GpuReport, evidence: GpuEvidence, policy: Policy, out: Path) -> LocalResult:
    decision = gate.decide([evidence])
    report = build([part], decision, policy)
    comment = render.comment(report)
    render.write(comment, out / COMMENT)
    render.write(render.page(report), out / PAGE)
    return LocalResult(comment, render.first_line(report), decision)
