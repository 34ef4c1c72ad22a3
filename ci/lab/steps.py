"""What begins, decides and ends: a session opens on a checkout, a try is kept or reverted, a session is closed.

The author's branch and index are left alone: only files of the change are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.kernel import cards
from kernelgate.bench.kernel.cards import Cards
from kernelgate.bench.system import git, lock
from kernelgate.ci.lab import folder, report
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import Closed, ClosedWhy, Decided, Opened, SessionNote, TriedChange, tries
from kernelgate.ci.lab.state import state_of
from kernelgate.ci.policy.policy import Policy

REVERTED = "reverted"


@contextmanager
def alone(session: Session) -> Iterator[None]:
    """While the block runs, no other process tries, keeps or reverts in this session."""
    path = session.folder / folder.WORK / "lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        if not lock.taken(file.fileno()):
            raise UsageError(f"another command is at work in the session {session.name}: wait until it ends")
        yield


def begin(root: Path, asked: Opened) -> Session:
    """Opens the session. Raises UsageError for a card or case that is not there, and a name that is taken."""
    from kernelgate.bench.system import environment  # which asks the driver

    known = cards.of_checkout(root).without_mistakes()
    card = asked.card or (known.names[0] if len(known.names) == 1 else None)
    if card not in known.names:
        missing = f"there is no card {card}" if card else "name the card with --card"
        raise UsageError(f"{missing}; this checkout has: {', '.join(known.names) or 'none'}")
    machine = environment.describe()
    kind = environment.kind(machine)
    only = Cards(known.folder, (known[card],))
    ids = tuple(case.rpartition("/")[2] for case in asked.cases)
    chosen = cards.select(only, kind, None, [f"{card}/{case}" for case in ids])
    if not chosen:
        raise UsageError(f"the card {card} has no cases for {'a machine without a GPU' if kind == 'cpu' else 'a GPU'}")
    base = git.take_snapshot(root, cards.paths(known))
    taken = [one.name for one in folder.every(root)]
    name = asked.name or folder.slug(asked.objective, taken, f"{datetime.now(UTC):%Y-%m-%d}")
    capability = machine.device.compute_capability
    here = {
        "gpu": "cpu" if kind == "cpu" else machine.device.name,
        "architecture": f"sm_{capability.replace('.', '')}" if capability else "cpu",
    }
    told = {"at": folder.now(), "name": name, "card": card, "cases": ids, "base": base, **here}
    made = folder.create(root, asked.model_copy(update=told))
    git.keep_snapshot(root, name, "base", base)
    return made


def patch_of(session: Session, number: int) -> Path:
    """Where the change of a try is kept."""
    return session.folder / f"try-{number}.patch"


def sources(root: Path, card: str | None) -> tuple[str, ...]:
    """Beginnings of paths below which new files belong to the kernel. Raises UsageError where the card is gone."""
    return cards.paths(known_cards(root, card))


def known_cards(root: Path, card: str | None) -> Cards:
    known = cards.of_checkout(root)
    if card not in known.names:
        raise UsageError(
            f"this session is of the card {card}, and this checkout has {', '.join(known.names) or 'none'}"
        )
    return known


def kept_state(session: Session) -> str:
    """The commit or snapshot that the next try is measured against."""
    kept = [one for one in tries(session.events) if one.decision == "kept"]
    found = kept[-1].head if kept else session.opened.base
    if found is None:
        raise UsageError(f"the log of {session.name} does not say which commit it began with: begin another session")
    return found


def keep(session: Session, why: str) -> Decided:
    """The last try stands: the next one is measured against it. Raises UsageError where there is none to decide."""
    with alone(session):
        tried = _undecided(session)
        decided = Decided(at=folder.now(), number=tried.number, kept=True, why=why or tried.said)
        folder.append(session.folder, decided)
        return decided


def revert(session: Session, root: Path, why: str) -> tuple[Decided, Path | None]:
    """The sources are again as they were at the last kept state; what they were is kept, as the patch that is named.

    None where they were that already. Raises UsageError where there is no try to decide.
    """
    with alone(session):
        tried = _undecided(session)
        base = kept_state(session)
        paths = sources(root, session.opened.card)
        now = git.take_snapshot(root, paths)
        git.keep_snapshot(root, session.name, f"{REVERTED}-{tried.number}", now)
        patch = git.difference(root, base, now, paths)
        path = patch_of(session, tried.number)
        if patch:
            data = patch.encode("utf-8", "surrogateescape")
            if not (path.exists() and path.read_bytes() == data):  # the author changed more since
                path = path.with_name(f"{path.stem}-{REVERTED}.patch")
                files.write(path, data)
            git.take_back(root, path)
        decided = Decided(at=folder.now(), number=tried.number, kept=False, why=why or tried.said)
        folder.append(session.folder, decided)
        return decided, path if patch else None


def _undecided(session: Session) -> TriedChange:
    waiting = [one for one in tries(session.events) if one.decision is None]
    if not waiting:
        raise UsageError(f"{session.name} has no try that waits for a decision: `kernelgate session try` comes first")
    return waiting[-1]


def close(session: Session, policy: Policy, why: ClosedWhy, learnt: str) -> tuple[Path, ...]:
    """Logs the end, and writes the report with its drawings, whose paths it returns."""
    with alone(session):
        at = folder.now()
        state = state_of(session.events, policy, at)
        notes = [SessionNote(at=at, said=learnt, kind="learnt")] if learnt else []
        said = state.stop_reason or learnt or f"{state.minutes:.0f} minutes, {len(state.tries)} tries"
        folder.append(session.folder, *notes, Closed(at=at, why=why, said=said))
        return write_report(folder.read(session.folder), policy)


def write_report(session: Session, policy: Policy) -> tuple[Path, ...]:
    """The report of what the log says now."""
    made = report.of(session.events, policy, folder.now())
    for name, text in made.items():
        files.write(session.folder / name, text)
    return tuple(session.folder / name for name in made)


def ask_for_review(session: Session, policy: Policy) -> Path:
    """Writes what an expert fills in. Raises UsageError where that is there already: it may be filled in."""
    path = session.folder / report.REVIEW
    if path.exists():
        raise UsageError(f"{path} is there already: fill it in, or remove it first")
    files.write(path, report.for_review(session.events, policy, folder.now()))
    return path
