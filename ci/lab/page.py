"""Writes the page of a session: what is known of it, drawn in one place, and the calculator beside it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from kernelgate.bench.build import machine_code
from kernelgate.bench.core import hardware
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.explain import tile
from kernelgate.bench.kernel import cards
from kernelgate.ci.document import answer, drawing, render
from kernelgate.ci.document.model import Code, Line
from kernelgate.ci.lab import coming, drawings, folder, report
from kernelgate.ci.lab.log import TriedChange, duration
from kernelgate.ci.lab.state import (
    BLIND_TARGET,
    BOTTLENECK_TARGET,
    BUILD_TARGET,
    GateState,
    SessionBudget,
    SessionState,
)
from kernelgate.ci.policy.policy import Policy

NONE = "–"


@dataclass(frozen=True)
class PageMark:
    """What stands before a line: its colour, its sign, and the same as a word."""

    tone: str
    glyph: str
    word: str


REACHED = PageMark("good", "✓", "reached")
MISSED = PageMark("bad", "!", "missed")
WAITING = PageMark("same", "", "not yet")
GATES = {
    "passed": PageMark("good", "✓", "passed"),
    "failed": PageMark("bad", "!", "failed"),
    "skipped": PageMark("warn", NONE, "skipped"),
    "open": PageMark("same", "", "open"),
}


@dataclass(frozen=True)
class ShownGate:
    of: GateState
    mark: PageMark
    time: str
    said: Line
    on_failure: Line


@dataclass(frozen=True)
class ShownMetric:
    name: str
    now: str
    target: str = NONE
    mark: PageMark | None = None
    """None of what has no target."""


@dataclass(frozen=True)
class ShownTry:
    of: TriedChange
    mark: PageMark
    gain: str


def page(state: SessionState, known: Calculator, live: bool = False) -> str:
    """One HTML file that fetches nothing; a live one asks its server, and no other, for what has changed."""
    style, script = (Markup(_environment().get_template(name).render()) for name in ("page.css", "page.js"))  # noqa: S704
    own = hardware.of_device(state.opened.gpu)
    facts = calculator_data(known) | {"own": next((key for key, one in hardware.GPUS.items() if one is own), None)}
    return _environment().get_template("page.html.jinja").render(
        state=state,
        live=live,
        style=style,
        script=script,
        hashes={"style": _digest(style), "script": _digest(script)},
        shown=Markup(shown(state)),  # noqa: S704 (rendered with everything escaped)
        cards=[one.card for one in known.cards],
        missing=known.missing,
        axes=AXES,
        rules=known.rules,
        data=_embedded(facts),
    )  # fmt: skip


def shown(state: SessionState) -> str:
    """The part of the page that changes with the log, as HTML."""
    opened = state.opened
    return _environment().get_template("shown.html.jinja").render(
        state=state,
        about=" · ".join(filter(None, (opened.name, opened.template, opened.card, *opened.cases, opened.gpu))),
        tone="warn" if state.stop else "good" if state.closed == "done" else "same",
        why=_with_commands(state.next.why),
        gates=[_gate(one) for one in state.gates],
        metrics=list(_metrics(state)),
        tries=[ShownTry(one, _try_mark(one), report.gain_words(one)) for one in _in_order(state.tries)],
        drawings=list(_drawings(state)),
    )  # fmt: skip


def state_json(state: SessionState) -> str:
    """What a live page asks for: `state` as `kernelgate session status --json` has it, and `html`, the same drawn."""
    return json.dumps({"state": json.loads(answer.shown(state)), "html": shown(state)}, allow_nan=False)


def _environment() -> jinja2.Environment:
    return render.html("kernelgate.ci.lab")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _embedded(facts: dict[str, Any]) -> Markup:
    """Inside a script element nothing may end it; JSON's own escapes mean the same."""
    text = json.dumps(facts, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 (no character is left that HTML gives a meaning)


def _gate(one: GateState) -> ShownGate:
    limit = f"{one.limit_minutes:g} min"
    time = f"{one.minutes:.1f} of {limit}" if one.minutes else f"within {limit}"
    said, on_failure = _with_commands(one.said or one.passes), _with_commands(one.on_failure)
    return ShownGate(one, GATES[one.status], time, said, on_failure)


def _with_commands(text: str) -> Line:
    """What stands between ` and ` is a command; an odd one is a character."""
    parts = text.split("`") if text.count("`") % 2 == 0 else [text]
    return tuple(Code(part) if number % 2 else part for number, part in enumerate(parts) if part)


def _in_order(tries: Sequence[TriedChange]) -> list[TriedChange]:
    return sorted(tries, key=lambda one: one.number)


def _try_mark(one: TriedChange) -> PageMark:
    if one.decision == "kept":
        return PageMark("good", "✓", "kept")
    if one.failed:
        return PageMark("bad", "!", "failed")
    return PageMark("same", "↩", "reverted") if one.decision else PageMark("unknown", "?", "undecided")


def _metrics(state: SessionState) -> Iterator[ShownMetric]:
    found = state.figures
    yield _time("time to a working build", found.minutes_to_build, BUILD_TARGET, state)
    yield _time("time to a named bottleneck", found.minutes_to_bottleneck, BOTTLENECK_TARGET, state)
    yield ShownMetric(
        "blind tries", f"{found.blind} of {found.tries}", f"{BLIND_TARGET}", MISSED if found.blind else _so_far(state)
    )
    yield _speed(state)
    yield ShownMetric("time saved by what was kept", f"{found.gain_kept_pct:.3g}%")
    yield ShownMetric("tries kept", f"{found.kept} of {found.tries}")
    if found.several_variables:
        yield ShownMetric("tries that change more than one thing", f"{found.several_variables}")
    yield from (_budget(one) for one in state.budgets)


def _so_far(state: SessionState) -> PageMark:
    return REACHED if state.tries else WAITING


def _time(name: str, minutes: float | None, goal: float, state: SessionState) -> ShownMetric:
    """One that is not reached is missed once its time is over; of a session that is closed it is not known."""
    target = f"≤ {goal:g} min"
    if minutes is not None:
        return ShownMetric(name, duration(minutes), target, REACHED if minutes <= goal else MISSED)
    if state.closed:
        return ShownMetric(name, NONE, target, PageMark("same", NONE, "not known"))
    return ShownMetric(name, "not yet", target, MISSED if state.minutes > goal else WAITING)


def _speed(state: SessionState) -> ShownMetric:
    speedup, target = state.figures.speedup, state.opened.target
    now = NONE if speedup is None else f"{speedup:.3g}×"
    if target is None:
        return ShownMetric("speed against the reference", now)
    reached = speedup is not None and speedup >= target
    mark = REACHED if reached else MISSED if state.closed and speedup is not None else WAITING
    return ShownMetric("speed against the reference", now, f"≥ {target:g}×", mark)


def _budget(one: SessionBudget) -> ShownMetric:
    digits = 0 if one.of == "time" else 2
    now = f"{one.spent:.{digits}f} {one.unit}" if one.spent or one.limit is not None else NONE
    if one.limit is None:
        return ShownMetric(f"{one.of} spent", now)
    within = one.spent < one.limit
    mark = PageMark("good", "✓", "within") if within else PageMark("bad", "!", "spent")
    return ShownMetric(f"{one.of} spent", now, f"≤ {one.limit:.{digits}f} {one.unit}", mark)


def _drawings(state: SessionState) -> Iterator[Markup]:
    drawn = {
        "Gain of each try over what stood before it": (
            drawings.gains(state.tries),
            "Percent less time with its 95% interval; kept ones are filled.",
        ),
        "Time by phase": (drawings.phases(state), ""),
    }
    for title, (one, note) in drawn.items():
        if one is not None:
            yield drawing.figure(title, one.spoken, one.height, *one.content, note=note)


# ---- the calculator --------------------------------------------------------------------------------------------------


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
    """What a card says of the tiles, in the order of `asked_tiles`: what a block takes, or why there is none."""

    card: str
    answers: tuple[TileAnswer, ...]


@dataclass(frozen=True)
class Calculator:
    rules: Mapping[str, int]
    """By the names that templates/calculator.js has for them."""
    cards: tuple[CardTiles, ...]
    missing: str | None = None
    """Why cards are missing."""


def asked_tiles() -> list[dict[str, int]]:
    """Every tile of AXES, as a card's tile() takes it."""
    return [dict(zip(AXES, values, strict=True)) for values in product(*AXES.values())]


def calculator_data(known: Calculator) -> dict[str, Any]:
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


RULES = {
    "warp": machine_code.WARP,
    "registers_per_warp_unit": machine_code.REGISTERS_PER_WARP_UNIT,
    "max_registers": machine_code.MAX_REGISTERS,
    "schedulers": machine_code.SCHEDULERS,
    "shared_unit": machine_code.SHARED_UNIT,
    "system_shared": machine_code.SYSTEM_SHARED,
    "max_threads": machine_code.MAX_THREADS,
    "registers_beside": tile.BESIDE,
}


def state(session: Path, policy: Policy) -> SessionState:
    """Of the session in this folder, now. Raises SessionError naming a line of its log that does not fit."""
    return coming.of(folder.read(session).events, policy, folder.now())


def known(root: Path) -> Calculator:
    """What the calculator knows. A card with a mistake costs its tiles, not the page."""
    try:
        found = cards.of_checkout(root, asked_tiles())
    except KernelgateError as error:
        return Calculator(RULES, (), str(error))
    missing = str(found.mistakes[0]) if found.mistakes else None
    if not found.cards and missing is None:
        missing = "this checkout has no card"
    return Calculator(RULES, tuple(CardTiles(one.name, one.tiles) for one in found.cards), missing)
