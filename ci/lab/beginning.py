"""Begins a session: its card, its cases, this machine, and the state that the first try is measured against."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.kernel import cards
from kernelgate.bench.kernel.cards import Cards
from kernelgate.bench.system import git
from kernelgate.ci.lab import folder
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import Opened


def begin(root: Path, asked: Opened) -> Session:
    """Opens the session. Raises UsageError for a card or case that is not there, and a name that is taken."""
    from kernelgate.bench.system import environment

    known = cards.of_checkout(root).without_mistakes()
    card = _card(known, asked.card)
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
    made = folder.create(
        root,
        asked.model_copy(
            update={
                "at": folder.now(),
                "name": name,
                "card": card,
                "cases": ids,
                "gpu": "cpu" if kind == "cpu" else machine.device.name,
                "architecture": f"sm_{capability.replace('.', '')}" if capability else "cpu",
                "base": base,
            }
        ),
    )
    git.keep_snapshot(root, name, "base", base)
    return made


def _card(known: Cards, asked: str | None) -> str:
    names = ", ".join(known.names) or "none"
    if asked is None and len(known.names) != 1:
        raise UsageError(f"name the card with --card; this checkout has: {names}")
    if asked is not None and asked not in known.names:
        raise UsageError(f"there is no card {asked}; this checkout has: {names}")
    return asked or known.names[0]
