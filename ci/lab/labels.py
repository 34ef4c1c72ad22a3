"""What a try is labelled as: as it was logged, and as reviewers corrected it since."""

from __future__ import annotations

from collections.abc import Iterable

from kernelgate.ci.lab.log import Corrected, Event, TriedChange


def corrected(events: Iterable[Event]) -> tuple[TriedChange, ...]:
    """The tries of a session in their order, with the labels that count.

    Of two corrections of the same label the later one counts, by its time: where two branches each bring one, the lines
    may stand in any order after the merge.
    """
    every = tuple(events)
    corrections = sorted((one for one in every if isinstance(one, Corrected)), key=lambda one: one.at or "")
    return tuple(_labelled(one, corrections) for one in every if isinstance(one, TriedChange))


def _labelled(tried: TriedChange, corrections: Iterable[Corrected]) -> TriedChange:
    labels: dict[str, str] = {}
    for one in corrections:
        if one.number == tried.number:
            said = {"action": one.action, "bottleneck": one.bottleneck}
            labels |= {label: name for label, name in said.items() if name is not None}
    return tried.model_copy(update=labels)
