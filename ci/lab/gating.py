"""`kernelgate session gate`: one gate, or all that are open, each attempt logged as it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kernelgate.bench.core.errors import UsageError
from kernelgate.ci.lab import coming, folder, gates, passing, trying
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import GateAttempt, GateName
from kernelgate.ci.policy.policy import Policy


def run(
    session: Session, root: Path, policy: Policy, asked: str | None, skip: str | None, say: Callable[[str], None]
) -> bool:
    """Whether the gate `asked` passes; without one, all that are open, to the first that fails.

    Raises UsageError for a gate that this kind of session has not, and for one whose turn has not come.
    """
    with trying.alone(session):
        if asked is not None:
            return _one(session, root, policy, _named(session, policy, asked), skip, say)
        while (name := _due(session, policy)) is not None:
            if not _one(session, root, policy, name, None, say):
                return False
            session = folder.read(session.folder)
        return True


def _one(
    session: Session, root: Path, policy: Policy, name: GateName, skip: str | None, say: Callable[[str], None]
) -> bool:
    made = passing.skip(name, skip) if skip else passing.attempt(session, root, policy, name, folder.every(root))
    folder.append(session.folder, made)
    say(f"{name}: {_in_words(made)}")
    return made.passed


def _in_words(made: GateAttempt) -> str:
    return made.said if made.skipped else f"{'passed' if made.passed else 'FAILED'}: {made.said}"


def _named(session: Session, policy: Policy, asked: str) -> GateName:
    """The gate, whose earlier ones are passed."""
    order = [gate.name for gate in gates.of(session.opened.template, policy)]
    if asked not in order:
        raise UsageError(
            f"a session of the kind {session.opened.template} has no gate {asked}; it has {', '.join(order)}"
        )
    state = coming.of(session.events, policy, folder.now())
    at = order.index(asked)
    before = next((gate.name for gate in state.gates[:at] if gate.status in ("open", "failed")), None)
    if before is not None:
        raise UsageError(f"{before} comes before {asked}: `kernelgate session gate {before}`")
    return order[at]


def _due(session: Session, policy: Policy) -> GateName | None:
    state = coming.of(session.events, policy, folder.now())
    return None if state.stop else coming.due(state.gates, state.figures.speedup_before, policy)
