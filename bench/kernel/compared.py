"""Which card judges which libraries: the default branch's inputs, oracle and cases, each commit's own call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kernelgate.bench import record
from kernelgate.bench.build.library import Library, Sides
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel import cards
from kernelgate.bench.kernel.card import DeviceKind
from kernelgate.bench.kernel.cards import CardFacts, Cards, ChosenCase

Source = Literal["default branch", "head"]


@dataclass(frozen=True)
class Compared:
    """One card's libraries with the card that judges them."""

    card: CardFacts
    sides: Sides
    source: Source | None
    """Whose card judges; None where a call names no default branch, such as on a developer's machine."""
    notes: tuple[record.Note, ...] = ()

    @property
    def same(self) -> bool:
        """Whether nothing that is measured differs."""
        return self.sides.base is not None and self.sides.base.same_as(self.sides.head)

    @property
    def recorded(self) -> record.Card:
        return self.card.recorded.model_copy(update={"source": self.source})


def judged(judging: Cards, sides: Mapping[str, Sides], source: Source | None = None) -> tuple[Compared, ...]:
    """Every card's libraries with the card of `judging`; with the head's own where that has none.

    Raises KernelgateError where neither is there.
    """
    judging.without_mistakes()
    return tuple(_judged(judging, name, both, source) for name, both in sides.items())


def select(
    compared: Sequence[Compared], device: DeviceKind, suite: str | None, ids: Sequence[str]
) -> tuple[ChosenCase, ...]:
    """The cases that were asked for, of all cards. Raises UsageError as cards.select does."""
    listed = tuple(one.card for one in compared)
    return cards.select(Cards(listed[0].file.parent, listed), device, suite, ids) if listed else ()


def _judged(judging: Cards, name: str, sides: Sides, source: Source | None) -> Compared:
    own = own_card(sides.head)
    if name not in judging.names:
        if own is None:
            raise KernelgateError(f"no card says how {name} is judged: {judging.folder} has none of that name")
        text = (
            f"the default branch has no card {name} yet, so the pull request's own is used: it says itself what is "
            "right, and nothing that was measured with it can block"
        )
        notes = [record.Note(code="no_card_on_base", card=name, text=text), *_alone(name, sides)]
        return Compared(own, sides, source and "head", tuple(notes))
    card = judging[name]
    notes = []
    if own is not None and own.sha256 != card.sha256 and source == "default branch":
        text = f"the card {name} is changed: the default branch's card measured; the new one counts after the merge"
        notes.append(record.Note(code="card_changed", card=name, text=text))
    if own is not None and (missing := lacking(own, card)):
        text = (
            f"its call() now takes {', '.join(missing)}, which the card of the default branch does not give, so that "
            "the head was measured by its own card"
        )
        alone = replace(sides, base=None, pinned=None, why_alone=text)
        return Compared(own, alone, source and "head", (*notes, *_alone(name, alone)))
    if sides.base and (missing := lacking(own_card(sides.base), card)):
        text = f"the base's call() takes {', '.join(missing)}, which the card does not give"
        sides = replace(sides, base=None, why_alone=text)
    if sides.pinned and (missing := lacking(own_card(sides.pinned), card)):
        text = f"the pinned commit's call() takes {', '.join(missing)}, which the card does not give"
        sides = replace(sides, pinned=None, why_alone=text)
    return Compared(card, sides, source, (*notes, *_alone(name, sides)))


def _alone(name: str, sides: Sides) -> tuple[record.Note, ...]:
    """Why there is no base, and no pinned commit, where one was asked for."""
    if sides.base is not None or sides.pinned is not None or not sides.why_alone:
        return ()
    return (record.Note(code="head_alone", card=name, text=sides.why_alone),)


def own_card(library: Library) -> CardFacts | None:
    return None if library.card is None else cards.read(library.card.parent).without_mistakes()[library.manifest.card]


def lacking(own: CardFacts | None, judge: CardFacts) -> tuple[str, ...]:
    """What a commit's call takes and the judging card does not give."""
    if own is None or judge.gives is None:
        return ()
    return tuple(name for name in own.call_needs if name not in judge.gives)
