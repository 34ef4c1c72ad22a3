"""One try: what changed since the last kept state, measured against it, and what certainty and policy make of it.

`python -m kernelgate.ci.lab.trying FOLDER` is the process that measures: FOLDER/try.json says what, FOLDER/run.json is
its record; where there is nothing to judge, try.json says why. Its parent ends it when it falls silent, and loses
nothing then.
"""

from __future__ import annotations

import difflib
import hashlib
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

from kernelgate.bench import record
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import BuildError, CannotCompileError, KernelgateError, UsageError
from kernelgate.bench.kernel import cards
from kernelgate.bench.record import RunRecord
from kernelgate.bench.system import git, lock
from kernelgate.bench.system.progress import say
from kernelgate.ci.explain import budget
from kernelgate.ci.explain.analyze import analyze_kernel
from kernelgate.ci.explain.next_step import KEEP_FROM
from kernelgate.ci.explain.recommend import CATALOGUE
from kernelgate.ci.judge.case import RecordVerdict
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.lab import advice, folder, log, state, steps, variables, watching
from kernelgate.ci.lab.folder import RECORD, Session
from kernelgate.ci.lab.log import Event, Opened, PatternUse, TriedChange, TryOutcome, tries
from kernelgate.ci.lab.state import due, is_tuning, untried
from kernelgate.ci.lab.watching import Watch
from kernelgate.ci.pipeline import local, prior
from kernelgate.ci.policy import policy as policies
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import gpu, why

TRY = "try.json"
SESSION_FUZZ_S: Final = 10.0
"""Of a try, for its fuzz trials, the riskiest first. Before a merge they are run in full."""
LIMIT_S = 1800.0
"""Of a whole try; a wedged one falls silent long before."""
STANDARD_ERRORS = 1.96
"""On either side of a 95% interval. With few processes the interval is wider, and the error then on the safe side."""


def run(session: Session, root: Path, policy: Policy, asked: TriedChange, sessions: Sequence[Session]) -> TriedChange:
    """Measures and logs a try, of which `asked` says what an author says of it.

    Raises UsageError where there is nothing to try, or something comes first.
    """
    known = tries(session.events)
    with steps.alone(session):
        speedup = state.figures(session.events, policy).speedup_before
        if gate := due(state.gate_states(session.events), speedup):
            first = f"`kernelgate session gate {gate}`, or pass it over with --skip"
            raise UsageError(f"{gate} comes before any change: {first}")
        if known and known[-1].decision is None:
            raise UsageError(
                f"try {known[-1].number} is neither kept nor reverted: `kernelgate session keep` or `revert`"
            )
        change, patch = _changed(session, root, asked.model_copy(update={"number": len(known) + 1}))
        event = as_recommended(change, session, root)
        git.keep_snapshot(root, session.name, f"try-{event.number}", event.head or "")
        files.write(steps.patch_of(session, event.number), patch)
        if warning := variables.warning(event.variables):
            say(f"try {event.number}: {warning}")
        event = _measured(session, root, policy, event, sessions)
        named = event.bottleneck or advice.bottleneck(session)
        estimated = advice.nvidia_gain_pct(session, event.number, event.action)
        event = event.model_copy(update={"bottleneck": named, "nvidia_gain_pct": estimated})
        folder.append(session.folder, event, *_violated(session.events, event))
        return event


def as_recommended(asked: TriedChange, session: Session, root: Path) -> TriedChange:
    """With the action that `kernelgate recommend` names now, where the author named none, and whether it names it.

    Raises UsageError for an action that nobody knows, and where none is named although one is said to be recommended.
    """
    if asked.action is not None and asked.action not in CATALOGUE:
        near = difflib.get_close_matches(asked.action, CATALOGUE, 1)
        meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(CATALOGUE))}"
        raise UsageError(f"no action is called {asked.action!r}: {meant}")
    if asked.action is None and not asked.recommended:
        return asked
    source = advice.profile_of(session)
    try:
        found = advice.answer(source, root).recommendations if source else ()
    except KernelgateError as error:
        say(f"nothing is recommended: {error}")
        found = ()
    names = [one.action for one in found]
    action = asked.action or untried(names, tries(session.events))
    if action is None:
        raise UsageError("nothing is recommended now (`kernelgate session next`): name what is tried with --action")
    named = next((one for one in found if one.action == action), None)
    if named is not None:
        say(f"{action} is recommended: {advice.evidence(named.tried)}")
    elif asked.recommended and names:  # an author's word counts only where nothing here says otherwise
        say(f"{action} is not recommended now, and not logged as such: {', '.join(names)}")
    recommended = named is not None or (asked.recommended and not names)
    return asked.model_copy(update={"action": action, "recommended": recommended})


def _violated(before: Sequence[Event], tried: TriedChange) -> Iterator[PatternUse]:
    """Patterns (docs/patterns) that the try went against, as a program can see it."""
    if warned := variables.warning(tried.variables):
        yield PatternUse(at=tried.at, pattern="one-variable-at-a-time", how="violated", said=warned)
    if state.blind((*before, tried)) > state.blind(before):
        said = f"try {tried.number} was made without a profile"
        yield PatternUse(at=tried.at, pattern="profile-before-optimise", how="violated", said=said)


def _changed(session: Session, root: Path, asked: TriedChange) -> tuple[TriedChange, bytes]:
    """What the working tree has that the last kept state has not; and as a patch."""
    base, known = steps.kept_state(session), steps.known_cards(root, session.opened.card)
    paths = cards.paths(known)
    head = git.take_snapshot(root, paths)
    patch = git.difference(root, base, head, paths)
    if not patch:
        where = ", ".join(paths)
        raise UsageError(f"nothing changed below {where} since the last kept state: change the kernel, then try it")
    data = patch.encode("utf-8", "surrogateescape")
    told = {
        "base": base,
        "head": head,
        "files": git.changed_files(root, base, head, paths),
        "diff_sha256": hashlib.sha256(data).hexdigest(),
        "variables": variables.of(patch, cards.sources(known)),
    }
    return asked.model_copy(update=told), data


def _measured(
    session: Session, root: Path, policy: Policy, asked: TriedChange, sessions: Sequence[Session]
) -> TriedChange:
    """With all that measuring says of it."""
    work = session.folder / folder.WORK / f"try-{asked.number}"
    shutil.rmtree(work, ignore_errors=True)  # of one that was ended
    files.write(work / TRY, log.line(asked))
    expected = watching.expected_seconds(None, session, root, sessions)
    watch = Watch(f"try {asked.number}", LIMIT_S, expected)
    done = watching.run("kernelgate.ci.lab.trying", [str(work.absolute())], root, watch)
    tried = TriedChange.model_validate_json((work / TRY).read_text(encoding="utf-8"))
    told: dict[str, object] = {
        "at": folder.now(),
        "seconds": round(done.seconds, 1),
        "machine": lock.boot_identity(),
        "silent_s": done.silent_s,
        "advised": "revert",
    }
    if done.code == 0:
        told["record"] = hashlib.sha256((work / RECORD).read_bytes()).hexdigest()
        told |= _judged(session, record.read(work / RECORD), policy)
    elif tried.failed is None:
        told |= {"failed": "measurement", "said": done.ended or done.last.removeprefix("kernelgate: ")}
    return tried.model_copy(update=told)


def _judged(session: Session, measured: RunRecord, policy: Policy) -> dict[str, object]:
    """The fields of a try that its record answers."""
    found: dict[str, object] = {}
    if measured.fuzz:
        found |= {"fuzz_trials": measured.fuzz.run, "fuzz_failed": measured.fuzz.failed}
    profiled_base = next((one.base for one in why.both_sides(measured) if one.base is not None), None)
    if profiled_base is not None:  # what held the kernel back before the change
        found["bottleneck"] = analyze_kernel(profiled_base).bottleneck.bottleneck.value
    if measured.environment.device.compute_capability:
        found["gpu_seconds"] = round(sum(cost.gpu_seconds for cost in measured.costs), 3)
    wrong = next((one for check in measured.checks for one in check.results if not one.passed), None)
    if wrong is not None:
        return {**found, "failed": "correctness", "said": f"wrong: {wrong.id}: {wrong.message}; repeat: {wrong.repeat}"}
    verdict = judge(measured, policy, name=RECORD, history=prior.past(say)(measured))
    if verdict.refused is not None:
        return {**found, "failed": "measurement", "said": verdict.reason}
    outcomes = tuple(
        TryOutcome(
            case=case.id,
            status=case.status.name.lower(),
            change_pct=case.change_pct,
            interval_pct=case.interval_pct,
            error_pct=(case.interval_pct[1] - case.interval_pct[0]) / 2 / STANDARD_ERRORS,
            processes=case.processes,
            base_us=case.base_us,
            head_us=case.head_us,
        )
        for case in verdict.cases
        if case.change_pct is not None and case.interval_pct
    )
    tuning = is_tuning(state.figures(session.events, policy).speedup)
    told = {"outcomes": outcomes, "said": verdict.reason, "cause": _cause(measured, verdict)}
    return {**found, **told, "advised": advised(verdict, tuning)}


def advised(verdict: RecordVerdict, tuning: bool) -> Literal["keep", "revert"]:
    """Keep what is certainly faster, by enough, and slower nowhere; `tuning`: any certain gain is enough."""
    if any(case.status.is_slower for case in verdict.cases):
        return "revert"
    whole = verdict.means[0] if verdict.means else verdict.cases[0] if len(verdict.cases) == 1 else None
    if whole is None or not whole.status.is_faster or whole.change_pct is None:
        return "revert"
    times = 1 / (1 + whole.change_pct / 100)
    return "keep" if tuning or times >= KEEP_FROM else "revert"


def _cause(measured: RunRecord, verdict: RecordVerdict) -> str | None:
    """Why the time changed, by the profiles of both sides; None where they were not made, or nothing changed."""
    changed = {one.case.key: one for one in gpu.judged(measured, verdict) if one.status.is_news}
    both = next((one for one in why.both_sides(measured) if one.base is not None and one.key in changed), None)
    if both is None:
        return None
    return " ".join(budget.sentences(why.budget_of(measured, both, changed[both.key])))


# ---- the process that measures ---------------------------------------------------------------------------------------


def measure(root: Path, opened: Opened, asked: TriedChange, into: Path) -> RunRecord:
    """The record of a try: both sides are built, fuzzed, timed and profiled. Raises KernelgateError."""
    from kernelgate.bench.check import trials
    from kernelgate.bench.kernel import commit
    from kernelgate.bench.measure import run as verbs
    from kernelgate.bench.system.worker import worker_pool

    known = policies.load(root / policies.POLICY_FILE if (root / policies.POLICY_FILE).exists() else None)
    gates = known.gates.model_copy(update={"sanitizer": "ignore"})  # before a merge, not at each try
    card, cases = opened.card or "", tuple(f"{opened.card}/{case}" for case in opened.cases)
    rules = local.MeasuringRules(
        known.model_copy(update={"gates": gates}),
        prior.past(say),
        cases,
        SESSION_FUZZ_S,
        "full",  # what is recommended next goes by NVIDIA's rules, too
    )
    say("building")
    with worker_pool() as processes, git.worktree(root, asked.base or "", cards.FOLDER) as tree:
        processes.prepare({trials.WORKER: 1})  # it loads torch while libraries are compiled
        sides = verbs.against(verbs.libraries(root, asked.head, None), verbs.bases(root, asked.base))
        if card not in sides:
            raise KernelgateError(f"the change leaves no card {card}: {cards.FOLDER}/{card}.py is gone")
        about = commit.judged(cards.read(tree / cards.FOLDER), {card: sides[card]})
        return local.measured(about, processes, into / RECORD, rules)


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):  # so that worktrees and workers are tidied away
        signal.signal(number, lambda code, _: sys.exit(128 + code))
    work = Path(sys.argv[1])
    asked = TriedChange.model_validate_json((work / TRY).read_text(encoding="utf-8"))
    try:
        opened = folder.read(work.parent.parent).opened
        record.write(measure(Path.cwd(), opened, asked, work), work / RECORD)
    except KernelgateError as error:
        of_sources = isinstance(error, BuildError) and not isinstance(error, CannotCompileError)
        failed = {"failed": "build" if of_sources else "measurement", "said": str(error)}
        files.write(work / TRY, log.line(asked.model_copy(update=failed)))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
