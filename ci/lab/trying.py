"""One try: what changed since the last kept state, measured against it, and what certainty and policy make of it."""

from __future__ import annotations

import difflib
import hashlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kernelgate.bench import record
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.kernel import cards
from kernelgate.bench.kernel.cards import Cards
from kernelgate.bench.record import RunRecord
from kernelgate.bench.system import git, lock
from kernelgate.bench.system.progress import say
from kernelgate.ci.explain import budget
from kernelgate.ci.explain.analyze import analyze_kernel
from kernelgate.ci.explain.recommend import CATALOGUE
from kernelgate.ci.judge.case import CaseVerdict, RecordVerdict
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.lab import advising, coming, expecting, figures, folder, measuring, variables, watching
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import Decided, Event, PatternUse, TriedChange, TryOutcome
from kernelgate.ci.lab.watching import Watch, Watched
from kernelgate.ci.pipeline import prior
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import gpu, thresholds, why

if TYPE_CHECKING:
    from kernelgate.ci.lab.advice_answer import AdvisedAction

LIMIT_S = 1800.0
"""Of a whole try; a wedged one falls silent long before."""
STANDARD_ERRORS = 1.96
"""On either side of a 95% interval. With few processes the interval is wider, and the error then on the safe side."""


@dataclass(frozen=True)
class TryRequest:
    """What an author says of a try."""

    what: str
    why: str
    action: str | None = None
    recommended: bool = False
    predicted_gain_pct: float | None = None
    probability: float | None = None


@dataclass(frozen=True)
class _Change:
    """What the working tree has that the last kept state has not."""

    base: str
    head: str
    patch: str
    paths: tuple[str, ...]
    variables: tuple[str, ...]


def run(session: Session, root: Path, policy: Policy, wanted: TryRequest, sessions: Sequence[Session]) -> TriedChange:
    """Measures and logs the try. Raises UsageError where there is nothing to try, or something comes first."""
    number = 1 + sum(isinstance(event, TriedChange) for event in session.events)
    with alone(session):
        _gates_are_passed(session, policy)
        undecided = [one.number for one in figures.try_states(session.events) if one.decision is None]
        if undecided:
            raise UsageError(f"try {undecided[-1]} is neither kept nor reverted: `kernelgate session keep` or `revert`")
        change = _changed(session, root)
        wanted = as_recommended(wanted, session, root, policy)
        git.keep_snapshot(root, session.name, f"try-{number}", change.head)
        files.write(patch_of(session, number), change.patch.encode("utf-8", "surrogateescape"))
        if warning := variables.warning(change.variables):
            say(f"try {number}: {warning}")
        event = _measured(session, root, policy, change, number, sessions)
        event = event.model_copy(
            update={
                **{name: getattr(wanted, name) for name in wanted.__dataclass_fields__},
                "bottleneck": event.bottleneck or advising.bottleneck(session, policy),
                "nvidia_gain_pct": advising.nvidia_gain_pct(session, number, wanted.action, policy),
                "files": change.paths,
                "diff_sha256": hashlib.sha256(change.patch.encode("utf-8", "surrogateescape")).hexdigest(),
                "variables": change.variables,
            }
        )
        folder.append(session.folder, event, *_violated(session.events, event))
        return event


def as_recommended(wanted: TryRequest, session: Session, root: Path, policy: Policy) -> TryRequest:
    """With what `kernelgate recommend` predicts of the action now, where the author did not say it.

    Raises UsageError for an action that nobody knows, and where none is named although one is said to be recommended.
    """
    if wanted.action is not None and wanted.action not in CATALOGUE:
        near = difflib.get_close_matches(wanted.action, CATALOGUE, 1)
        meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(CATALOGUE))}"
        raise UsageError(f"no action is called {wanted.action!r}: {meant}")
    if wanted.action is None and not wanted.recommended:
        return wanted
    found = _recommendations(session, root, policy)
    action = wanted.action or coming.untried([one.action for one in found], figures.try_states(session.events))
    if action is None:
        raise UsageError("nothing is recommended now (`kernelgate session next`): name what is tried with --action")
    predicted = next((one for one in found if one.action == action), None)
    if predicted is None:
        return _not_recommended(wanted, found)
    say(f"{action} is recommended: {predicted.evidence}")
    return replace(
        wanted,
        action=action,
        recommended=True,
        predicted_gain_pct=_either(wanted.predicted_gain_pct, predicted.predicted_gain_pct),
        probability=_either(wanted.probability, predicted.probability),
    )


def _not_recommended(wanted: TryRequest, found: Sequence[AdvisedAction]) -> TryRequest:
    """What an author says is recommended counts only where nothing here says otherwise."""
    if not (wanted.recommended and found):
        return wanted
    say(f"{wanted.action} is not recommended now, and not logged as such: {', '.join(one.action for one in found)}")
    return replace(wanted, recommended=False)


def _recommendations(session: Session, root: Path, policy: Policy) -> tuple[AdvisedAction, ...]:
    """Of the last kept state; none where there is no profile of it that can be read."""
    source = advising.profile_of(session)
    try:
        return advising.answer(source, root, policy).recommendations if source else ()
    except KernelgateError as error:
        say(f"nothing is recommended: {error}")
        return ()


def _either(said: float | None, known: float | None) -> float | None:
    return known if said is None else said


def _gates_are_passed(session: Session, policy: Policy) -> None:
    speedup = figures.of(session.events, policy).speedup_before
    due = coming.due(figures.gate_states(session.events, policy), speedup, policy)
    if due is not None:
        raise UsageError(f"{due} comes before any change: `kernelgate session gate {due}`, or pass it over with --skip")


def _violated(before: Sequence[Event], tried: TriedChange) -> Iterator[PatternUse]:
    """Patterns (docs/patterns) that the try went against, as a program can see it."""
    if warned := variables.warning(tried.variables):
        yield PatternUse(at=tried.at, pattern="one-variable-at-a-time", how="violated", said=warned)
    if figures.blind((*before, tried)) > figures.blind(before):
        said = f"try {tried.number} was made without a profile"
        yield PatternUse(at=tried.at, pattern="profile-before-optimise", how="violated", said=said)


def patch_of(session: Session, number: int) -> Path:
    """Where the change of a try is kept."""
    return session.folder / f"try-{number}.patch"


def sources(root: Path, card: str | None) -> tuple[str, ...]:
    """Beginnings of paths below which new files belong to the kernel. Raises UsageError where the card is gone."""
    return cards.paths(_known(root, card))


def _known(root: Path, card: str | None) -> Cards:
    known = cards.of_checkout(root)
    if card not in known.names:
        raise UsageError(
            f"this session is of the card {card}, and this checkout has {', '.join(known.names) or 'none'}"
        )
    return known


def kept_state(session: Session) -> str:
    """The commit or snapshot that the next try is measured against."""
    kept = {event.number for event in session.events if isinstance(event, Decided) and event.kept}
    tries = [one for one in session.events if isinstance(one, TriedChange) and one.number in kept]
    found = tries[-1].head if tries else session.opened.base
    if found is None:
        raise UsageError(f"the log of {session.name} does not say which commit it began with: begin another session")
    return found


def _changed(session: Session, root: Path) -> _Change:
    base = kept_state(session)
    known = _known(root, session.opened.card)
    paths = cards.paths(known)
    head = git.take_snapshot(root, paths)
    patch = git.difference(root, base, head, paths)
    if not patch:
        where = ", ".join(paths)
        raise UsageError(f"nothing changed below {where} since the last kept state: change the kernel, then try it")
    found = variables.of(patch, cards.sources(known))
    return _Change(base, head, patch, git.changed_files(root, base, head, paths), found)


@contextmanager
def alone(session: Session) -> Iterator[None]:
    """While the block runs, no other process tries, keeps or reverts in this session."""
    path = session.folder / folder.WORK / "lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        if not lock.taken(file.fileno()):
            raise UsageError(f"another command is at work in the session {session.name}: wait until it ends")
        yield


def _measured(
    session: Session, root: Path, policy: Policy, change: _Change, number: int, sessions: Sequence[Session]
) -> TriedChange:
    """All that measuring says of the try."""
    work = session.folder / folder.WORK / f"try-{number}"
    shutil.rmtree(work, ignore_errors=True)  # of one that was ended
    opened, rules = session.opened, policy.session
    cases = tuple(f"{opened.card}/{case}" for case in opened.cases)
    asked = measuring.MeasuringRequest(
        repo=root, base=change.base, head=change.head, card=opened.card or "", cases=cases
    )
    files.write(work / measuring.ASKED, asked.model_dump_json() + "\n")
    expected = expecting.seconds(None, session, root, sessions)
    watch = Watch(f"try {number}", rules.report_s, rules.silent_s, LIMIT_S, expected)
    done = watching.run("kernelgate.ci.lab.measuring", [str(work.absolute())], root, watch)
    event = TriedChange(
        at=folder.now(),
        number=number,
        what="",
        why="",
        said="",
        base=change.base,
        head=change.head,
        seconds=round(done.seconds, 1),
        machine=lock.boot_identity(),
        silent_s=done.silent_s,
    )
    if done.code != 0:
        return event.model_copy(update={**_failure(work, done), "advised": "revert"})
    path = work / measuring.RECORD
    measured = record.read(path)
    sha = hashlib.sha256(path.read_bytes()).hexdigest()
    return event.model_copy(update={"record": sha, **_judged(session, measured, policy, path)})


def _failure(work: Path, done: Watched) -> dict[str, object]:
    path = work / measuring.FAILURE
    if not path.exists():
        return {"failed": "measurement", "said": done.ended or done.last.removeprefix("kernelgate: ")}
    told = measuring.MeasuringFailure.model_validate_json(path.read_text(encoding="utf-8"))
    return {"failed": told.kind, "said": told.said}


def _judged(session: Session, measured: RunRecord, policy: Policy, path: Path) -> dict[str, object]:
    """The fields of a try that its record answers."""
    fuzzed = {"fuzz_trials": measured.fuzz.run, "fuzz_failed": measured.fuzz.failed} if measured.fuzz else {}
    common = {**fuzzed, **_profiles(measured, policy)}
    if measured.environment.device.compute_capability:
        common["gpu_seconds"] = round(sum(cost.gpu_seconds for cost in measured.costs), 3)
    wrong = next((one for check in measured.checks for one in check.results if not one.passed), None)
    if wrong is not None:
        said = f"wrong: {wrong.id}: {wrong.message}; repeat: {wrong.repeat}"
        return {**common, "failed": "correctness", "said": said, "advised": "revert"}
    verdict = judge(measured, policy, name=path.name, history=prior.past(say)(measured))
    if verdict.refused is not None:
        return {**common, "failed": "measurement", "said": verdict.reason, "advised": "revert"}
    outcomes = tuple(_outcome(case) for case in verdict.cases if case.change_pct is not None and case.interval_pct)
    cause = _cause(measured, verdict)
    speedup = figures.of(session.events, policy).speedup
    return {
        **common,
        "outcomes": outcomes,
        "said": verdict.reason,
        "cause": cause,
        "advised": advice(verdict, coming.is_tuning(speedup, policy), policy),
    }


def _outcome(case: CaseVerdict) -> TryOutcome:
    low, high = case.interval_pct or (0.0, 0.0)
    return TryOutcome(
        case=case.id,
        status=case.status.name.lower(),
        change_pct=case.change_pct or 0.0,
        interval_pct=(low, high),
        error_pct=(high - low) / 2 / STANDARD_ERRORS,
        processes=case.processes,
        base_us=case.base_us,
        head_us=case.head_us,
    )


def advice(verdict: RecordVerdict, tuning: bool, policy: Policy) -> Literal["keep", "revert"]:
    """Keep what is certainly faster, by enough, and slower nowhere; `tuning`: any certain gain is enough."""
    if any(case.status.is_slower for case in verdict.cases):
        return "revert"
    whole = verdict.means[0] if verdict.means else verdict.cases[0] if len(verdict.cases) == 1 else None
    if whole is None or not whole.status.is_faster or whole.change_pct is None:
        return "revert"
    times = 1 / (1 + whole.change_pct / 100)
    return "keep" if tuning or times >= policy.guidance.keep_from else "revert"


def _profiles(measured: RunRecord, policy: Policy) -> dict[str, object]:
    """What held the kernel back before the change."""
    found = next((one.base for one in why.both_sides(measured) if one.base is not None), None)
    if found is None:
        return {}
    named = analyze_kernel(found, thresholds.bottleneck_limits(policy)).bottleneck
    return {"bottleneck": named.bottleneck.value}


def _cause(measured: RunRecord, verdict: RecordVerdict) -> str | None:
    """Why the time changed, by the profiles of both sides; None where they were not made, or nothing changed."""
    changed = {one.case.key: one for one in gpu.judged(measured, verdict) if one.status.is_news}
    both = next((one for one in why.both_sides(measured) if one.base is not None and one.key in changed), None)
    if both is None:
        return None
    return " ".join(budget.sentences(why.budget_of(measured, both, changed[both.key])))
