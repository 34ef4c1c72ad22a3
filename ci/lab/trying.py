"""What is tried in a session: it opens on a checkout; a change is measured against the last kept state, then kept or
reverted; it is closed. The author's branch and index are left alone: only files of the change are written.

`python -m kernelgate.ci.lab.trying FOLDER` is the process that measures: FOLDER/try.json says what, FOLDER/run.json is
its record; where there is nothing to judge, try.json says why. Its parent ends it when it falls silent, and loses
nothing then.
"""

from __future__ import annotations

import hashlib
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from kernelgate.bench import record
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import BuildError, CannotCompileError, KernelgateError, UsageError
from kernelgate.bench.kernel import cards
from kernelgate.bench.kernel.cards import Cards
from kernelgate.bench.record import RunRecord
from kernelgate.bench.system import git, lock
from kernelgate.bench.system.progress import say
from kernelgate.ci.explain import budget
from kernelgate.ci.explain.analyze import analyze_kernel
from kernelgate.ci.explain.next_step import KEEP_FROM
from kernelgate.ci.explain.recommend import CATALOGUE
from kernelgate.ci.judge.case import RecordVerdict
from kernelgate.ci.judge.gate import SCATTER
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.lab import advice, folder, log, report, state, variables, watching
from kernelgate.ci.lab.folder import RECORD, Session
from kernelgate.ci.lab.log import Decided, Event, Opened, TriedChange, tries
from kernelgate.ci.lab.state import due, is_tuning, state_of
from kernelgate.ci.lab.watching import Watch
from kernelgate.ci.pipeline import local, prior
from kernelgate.ci.policy import policy as policies
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import gpu, why

TRY = "try.json"
REVERTED = "reverted"
SESSION_FUZZ_S: Final = 10.0
"""Of a try, for its fuzz trials, the riskiest first. Before a merge they are run in full."""
LIMIT_S = 1800.0
"""Of a whole try; a wedged one falls silent long before."""
STANDARD_ERRORS = 1.96
"""On either side of a 95% interval. With few processes the interval is wider, and the error then on the safe side."""


# ---- a session begins and ends ---------------------------------------------------------------------------------------


def begin(root: Path, asked: Opened) -> Session:
    """Opens the session. Raises UsageError for a card or case that is not there, and a name that is taken."""
    from kernelgate.bench.system import environment  # which asks the driver

    if asked.name:
        folder.new(root, asked.name)  # before anything else is done
    known = cards.of_checkout(root).without_mistakes()
    card = asked.card or (known.names[0] if len(known.names) == 1 else None)
    if not known.names:
        raise KernelgateError(f"{root} has no card in {cards.FOLDER}/: `kernelgate init` begins one")
    if card not in known.names:
        missing = f"there is no card {card}" if card else "name the card with --card"
        raise UsageError(f"{missing}; this checkout has: {', '.join(known.names)}")
    base = git.take_snapshot(root, cards.paths(known))
    files.try_folder(root / folder.FOLDER)
    machine = environment.describe()  # which takes long
    kind, capability = environment.kind(machine), machine.device.compute_capability
    ids = tuple(case.rpartition("/")[2] for case in asked.cases)
    if not cards.select(Cards(known.folder, (known[card],)), kind, None, [f"{card}/{case}" for case in ids]):
        raise UsageError(f"the card {card} has no cases for {'a machine without a GPU' if kind == 'cpu' else 'a GPU'}")
    taken = [path.name for path in (root / folder.FOLDER).glob("*")]
    name = asked.name or folder.slug(asked.objective, taken, f"{datetime.now(UTC):%Y-%m-%d}")
    told = {
        "at": folder.now(),
        "name": name,
        "card": card,
        "cases": ids,
        "base": base,
        "gpu": "cpu" if kind == "cpu" else machine.device.name,
        "architecture": f"sm_{capability.replace('.', '')}" if capability else "cpu",
    }
    made = folder.create(root, asked.model_copy(update=told))
    git.keep_snapshot(root, name, "base", base)
    return made


def close(session: Session, policy: Policy, why: log.ClosedWhy, learnt: str) -> tuple[Path, ...]:
    """Logs the end, and writes the report with its drawings, whose paths it returns."""
    with folder.alone(session):
        at = folder.now()
        known = state_of(session.events, policy, at)
        end: list[Event] = [log.SessionNote(at=at, said=learnt, kind="learnt")] if learnt else []
        said = known.stop_reason or learnt or f"{known.minutes:.0f} minutes, {len(known.tries)} tries"
        end.append(log.Closed(at=at, why=why, said=said))
        made = report.of((*session.events, *end), policy, at)
        for name, text in made.items():  # before the end is logged, after which nobody could write it any more
            files.write(session.folder / name, text)
        folder.append(session.folder, *end)
    return tuple(session.folder / name for name in made)


# ---- a try -----------------------------------------------------------------------------------------------------------


def run(session: Session, root: Path, policy: Policy, asked: TriedChange) -> TriedChange:
    """Measures and logs a try, of which `asked` says what an author says of it. Raises UsageError where there is
    nothing to try, or something comes first."""
    known = tries(session.events)
    with folder.alone(session):
        if gate := due(state.gate_states(session.events), state.figures(session.events, policy).speedup_before):
            first = f"`kernelgate session gate {gate}`, or pass it over with --skip"
            raise UsageError(f"{gate} comes before any change: {first}")
        if known and known[-1].decision is None:
            waits = f"try {known[-1].number} is neither kept nor reverted"
            raise UsageError(f"{waits}: `kernelgate session keep` or `revert`")
        if asked.action not in (None, *CATALOGUE):
            raise UsageError(f"no action is called {asked.action!r}: there are {', '.join(sorted(CATALOGUE))}")
        event, patch = _changed(session, root, asked.model_copy(update={"number": len(known) + 1}))
        at_hand = advice.at_hand(session, root)
        event = event.model_copy(update={"recommended": at_hand is not None and event.action in at_hand.actions})
        git.keep_snapshot(root, session.name, f"try-{event.number}", event.head or "")
        files.write(_patch_of(session, event.number), patch)
        if warning := variables.warning(event.variables):
            say(f"try {event.number}: {warning}")
        event = _measured(session, root, policy, event)
        if not event.bottleneck and at_hand:
            event = event.model_copy(update={"bottleneck": at_hand.bottleneck})
        folder.append(session.folder, event, *_violated(session.events, event))
        return event


def _violated(before: Sequence[Event], tried: TriedChange) -> Iterator[log.PatternUse]:
    """Patterns (docs/patterns.md) that the try went against, as a program can see it."""
    if warned := variables.warning(tried.variables):
        yield log.PatternUse(at=tried.at, pattern="one-variable-at-a-time", how="violated", said=warned)
    if state.blind((*before, tried)) > state.blind(before):
        said = f"try {tried.number} was made without a profile"
        yield log.PatternUse(at=tried.at, pattern="profile-before-optimise", how="violated", said=said)


def _known_cards(root: Path, card: str | None) -> Cards:
    known = cards.of_checkout(root)
    if card not in known.names:
        has = ", ".join(known.names) or "none"
        raise UsageError(f"this session is of the card {card}, and this checkout has {has}")
    return known


def _changed(session: Session, root: Path, asked: TriedChange) -> tuple[TriedChange, bytes]:
    """What the working tree has that the last kept state has not; and as a patch."""
    base, known = kept_state(session), _known_cards(root, session.opened.card)
    paths = cards.paths(known)
    head = git.take_snapshot(root, paths)
    patch = git.difference(root, base, head, paths)
    if not patch:
        where = ", ".join(paths)
        raise UsageError(f"nothing changed below {where} since the last kept state: change the kernel, then try it")
    data = patch.encode("utf-8", "surrogateescape")
    told = {"base": base, "head": head, "files": git.changed_files(root, base, head, paths)}
    told |= {"diff_sha256": hashlib.sha256(data).hexdigest(), "variables": variables.of(patch, cards.sources(known))}
    return asked.model_copy(update=told), data


def _measured(session: Session, root: Path, policy: Policy, asked: TriedChange) -> TriedChange:
    work = session.work / f"try-{asked.number}"
    shutil.rmtree(work, ignore_errors=True)  # of one that was ended
    files.write(work / TRY, log.line(asked))
    watch = Watch(f"try {asked.number}", LIMIT_S, watching.expected_seconds(None, session, folder.every(root)))
    done = watching.run("kernelgate.ci.lab.trying", [str(work.absolute())], root, watch)
    tried = TriedChange.model_validate_json((work / TRY).read_text(encoding="utf-8"))
    told: dict[str, object] = {
        "at": folder.now(),
        "seconds": round(done.seconds, 1),
        "machine": lock.boot_identity(),
        "gpu_seconds": done.device_s if session.opened.on_gpu else None,
        "silent_s": done.silent_s,
        "advised": "revert",
    }
    if done.code == 0:
        told["record"] = hashlib.sha256((work / RECORD).read_bytes()).hexdigest()
        told |= _judged(session, record.read(work / RECORD), policy)
    elif tried.failed is None:
        told |= {"failed": "measurement", "said": done.why}
    return tried.model_copy(update=told)


def _judged(session: Session, measured: RunRecord, policy: Policy) -> dict[str, object]:
    """The fields of a try that its record answers."""
    found: dict[str, object] = {}
    if measured.fuzz:
        found |= {"fuzz_trials": measured.fuzz.run, "fuzz_failed": measured.fuzz.failed}
    profiled_base = next((one.base for one in why.both_sides(measured) if one.base is not None), None)
    if profiled_base is not None:  # what held the kernel back before the change
        found["bottleneck"] = analyze_kernel(profiled_base).bottleneck.bottleneck.value
    wrong = next((one for check in measured.checks for one in check.results if one.fails), None)
    if wrong is not None:
        return {**found, "failed": "correctness", "said": f"wrong: {wrong.id}: {wrong.message}; repeat: {wrong.repeat}"}
    verdict = judge(measured, policy, name=RECORD, history=prior.past(say)(measured))
    if verdict.refused is not None:
        return {**found, "failed": "measurement", "said": verdict.reason}
    held = ("change_pct", "interval_pct", "processes", "base_us", "head_us")
    outcomes = tuple(
        log.TryOutcome(
            case=case.id,
            status=case.status.name.lower(),
            error_pct=(case.interval_pct[1] - case.interval_pct[0]) / 2 / STANDARD_ERRORS,
            **{name: getattr(case, name) for name in held},
        )
        for case in verdict.cases
        if case.change_pct is not None and case.interval_pct
    )
    tuning = is_tuning(state.figures(session.events, policy).speedup)
    past_pct = _past_scatter(verdict, TriedChange(what="", why="", outcomes=outcomes), policy.gates.improvement_pct)
    said = f"certainly faster, however far processes lie apart; {verdict.reason}" if past_pct else verdict.reason
    said = "; ".join([*(one.text for one in measured.notes if one.code == local.SMALL_END), said])
    told = {"outcomes": outcomes, "said": said, "cause": _cause(measured, verdict)}
    return {**found, **told, "advised": advised(verdict, tuning, past_pct)}


def advised(verdict: RecordVerdict, tuning: bool, past_pct: float | None = None) -> Literal["keep", "revert"]:
    """Keep what is certainly faster, by enough, and slower nowhere; `tuning`: any certain gain is enough. `past_pct`:
    a gain that is certain although the verdict leaves it open."""
    if any(case.status.is_slower for case in verdict.cases):
        return "revert"
    whole = verdict.means[0] if verdict.means else verdict.cases[0] if len(verdict.cases) == 1 else None
    gain_pct = -(whole.change_pct or 0.0) if whole and whole.status.is_faster else past_pct
    if not gain_pct:
        return "revert"
    return "keep" if tuning or 1 / (1 - gain_pct / 100) >= KEEP_FROM else "revert"


def _past_scatter(verdict: RecordVerdict, whole: TriedChange, gate_pct: float) -> float | None:
    """The gain over all cases where its whole interval lies past the gate, and nothing but that processes are not alike
    keeps it open: how far they lie apart is in the interval already, and no head of a session has an interest in it."""
    against = {one.code for case in verdict.cases for one in case.findings if one.disqualifies}
    if not against or against - SCATTER or len(whole.outcomes) < len(verdict.cases) or whole.gain is None:
        return None
    gain_pct, (low, _) = whole.gain
    return gain_pct if low >= gate_pct else None


def _cause(measured: RunRecord, verdict: RecordVerdict) -> str | None:
    """Why the time changed, by the profiles of both sides; None where they were not made, or nothing changed."""
    changed = {one.case.key: one for one in gpu.judged(measured, verdict) if one.status.is_news}
    both = next((one for one in why.both_sides(measured) if one.base is not None and one.key in changed), None)
    if both is None:
        return None
    return " ".join(budget.sentences(why.budget_of(measured, both, changed[both.key])))


# ---- and what becomes of it ------------------------------------------------------------------------------------------


def kept_state(session: Session) -> str:
    """The commit or snapshot that the next try is measured against."""
    kept = [one for one in tries(session.events) if one.decision == "kept"]
    found = kept[-1].head if kept else session.opened.base
    if found is None:
        raise UsageError(f"the log of {session.name} does not say which commit it began with: begin another session")
    return found


def keep(session: Session, why: str) -> Decided:
    """The last try stands: the next one is measured against it. Raises UsageError where there is none to decide."""
    with folder.alone(session):
        return _decided(session, True, why)


def revert(session: Session, root: Path, why: str) -> tuple[Decided, Path | None]:
    """The sources are again as they were at the last kept state; what they were is kept, as the patch that is named.
    None where they were that already. Raises UsageError where there is no try to decide."""
    with folder.alone(session):
        number = _undecided(session).number
        base, paths = kept_state(session), cards.paths(_known_cards(root, session.opened.card))
        now = git.take_snapshot(root, paths)
        git.keep_snapshot(root, session.name, f"{REVERTED}-{number}", now)
        patch = git.difference(root, base, now, paths)
        path = _patch_of(session, number)
        if patch:
            data = patch.encode("utf-8", "surrogateescape")
            if not (path.exists() and path.read_bytes() == data):  # the author changed more since
                path = path.with_name(f"{path.stem}-{REVERTED}.patch")
                files.write(path, data)
            git.take_back(root, path)
        return _decided(session, False, why), path if patch else None


def _undecided(session: Session) -> TriedChange:
    if waiting := [one for one in tries(session.events) if one.decision is None]:
        return waiting[-1]
    raise UsageError(f"{session.name} has no try that waits for a decision: `kernelgate session try` comes first")


def _decided(session: Session, kept: bool, why: str) -> Decided:
    tried = _undecided(session)
    decided = Decided(at=folder.now(), number=tried.number, kept=kept, why=why or tried.said)
    folder.append(session.folder, decided)
    return decided


def _patch_of(session: Session, number: int) -> Path:
    return session.folder / f"try-{number}.patch"


# ---- the process that measures ---------------------------------------------------------------------------------------


def measure(root: Path, opened: Opened, asked: TriedChange, into: Path) -> RunRecord:
    """The record of a try: both sides are built, fuzzed, timed and profiled. Raises KernelgateError."""
    from kernelgate.bench.check import trial_process
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
        witness=False,  # nobody deceives himself: the paired comparison and its certainty decide
        smallest_first=True,
    )
    say("building")
    with worker_pool() as processes, git.worktree(root, asked.base or "", (cards.FOLDER,)) as tree:
        processes.prepare({trial_process.WORKER: 1})  # it loads torch while libraries are compiled
        sides = verbs.against(verbs.libraries(root, asked.head, None), verbs.bases(root, asked.base))
        if card not in sides:
            raise KernelgateError(f"the change leaves no card {card}: {cards.FOLDER}/{card}.py is gone")
        if why_alone := sides[card].why_alone:  # else the change would be timed for nothing
            raise KernelgateError(f"the last kept state cannot be measured against, so nothing was timed: {why_alone}")
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
