"""What the page's calculator knows: the GPUs, the rules, and what each card says of every tile that is offered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from kernelgate.bench.core import hardware

TileAnswer = Mapping[str, int] | str
AXES: Mapping[str, tuple[int, ...]] = {
    "rows": (16, 32, 64, 96, 128, 192, 256),
    "columns": (16, 32, 64, 96, 128, 192, 256),
    "stages": (1, 2, 3, 4),
    "warps": (1, 2, 4, 8, 16),
}
"""The tiles that are offered: a page runs no card, so each is asked before. Others: `kernelgate resources --tile`."""


@dataclass(frozen=True)
class CardTiles:
    """What a card says of the tiles, in the order of `asked`: what a block takes, or why there is none."""

    card: str
    answers: tuple[TileAnswer, ...]


@dataclass(frozen=True)
class Calculator:
    rules: Mapping[str, int]
    """By the names that templates/calculator.js has for them."""
    cards: tuple[CardTiles, ...]
    missing: str | None = None
    """Why cards are missing."""


def asked() -> list[dict[str, int]]:
    """Every tile of AXES, as a card's tile() takes it."""
    return [dict(zip(AXES, values, strict=True)) for values in product(*AXES.values())]


def data(known: Calculator) -> dict[str, Any]:
    """For the page's script. Each answer of a card stands there once, and for each tile its place."""
    return {
        "rules": dict(known.rules),
        "gpus": [
            {"key": key, "name": model.name} | asdict(model.limits) for key, model in sorted(hardware.GPUS.items())
        ],
        "axes": AXES,
        "cards": [{"card": one.card, **_places(one.answers)} for one in known.cards],
    }


def _places(answers: Sequence[TileAnswer]) -> dict[str, Any]:
    different: list[TileAnswer] = []
    places = []
    for one in answers:
        if one not in different:
            different.append(one)
        places.append(different.index(one))
    return {"answers": different, "places": places}
