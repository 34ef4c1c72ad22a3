"""The cards of a repository as plain data: what there is to build, to time and to fuzz.

Cards are read by a worker (card_reader.py), without torch: the process that orchestrates never runs their code, and
listing them takes a fraction of a second.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from kernelgate.bench import record
from kernelgate.bench.build.sources import Command, Extension, Package
from kernelgate.bench.core.dtypes import DTYPES
from kernelgate.bench.core.errors import CardError, KernelgateError, UsageError, one_line
from kernelgate.bench.core.files import CARDS
from kernelgate.bench.kernel import axes as case_axes
from kernelgate.bench.kernel.axes import AxisValue
from kernelgate.bench.kernel.card import DeviceKind
from kernelgate.bench.record import Tolerance
from kernelgate.bench.system import git, isolation
from kernelgate.bench.system.worker import Message, WorkerError, WorkerProcess

FOLDER = CARDS
PATIENCE_S = 30.0
MOST_GPU_BYTES = 288 * 2**30
"""Of a B300."""
PLANNED_CHECKS: tuple[record.CheckKind, ...] = ("fuzz", "witness")
DEFAULT_SUITES: Mapping[DeviceKind, str] = {"cuda": "pr", "cpu": "cpu"}

Words = Annotated[str, AfterValidator(one_line)]


class CaseFacts(Message):
    id: str
    axes: dict[str, AxisValue]
    label: str
    flops: float | None
    bytes: float | None
    tolerance: tuple[float, float] | None


class CardMistake(Message):
    """As CardError has it; the words are a card's, which may hold anything."""

    file: Words
    line: int | None
    member: Words
    text: Words


class CardFacts(Message, ser_json_inf_nan="constants"):
    name: str
    label: str
    file: Path
    sha256: str
    build: Annotated[Extension | Package | Command, Field(discriminator="kind")]
    suites: dict[str, tuple[CaseFacts, ...]]
    """By name; "pr" is what a GPU times by default, "cpu" what a CPU does."""
    sanitize: tuple[CaseFacts, ...]
    asked: tuple[CaseFacts, ...]
    """Cases that no suite has and a user named."""
    reference: str
    kernel: str | None
    fuzz: dict[DeviceKind, dict[str, dict[str, Any]]]
    limits: dict[str, Any]
    """What the kernel takes at all, for each axis, as in `fuzz`."""
    extremes: tuple[CaseFacts, ...]
    """Cases at the ends of the limits, with tensors of more than 2 GiB."""
    distributions: tuple[str, ...]
    nonfinite: tuple[str, ...] = ()
    gives: tuple[str, ...] | None
    """The names of its inputs and outputs; None where they are known with torch alone."""
    call_needs: tuple[str, ...]
    tiles: tuple[dict[str, int] | str, ...]
    doubts: tuple[CardMistake, ...] = ()
    """What can be read and is hardly meant: `kernelgate cards` calls it a mistake; it holds up nothing else."""
    again: tuple[str, ...] = Field(default=(), exclude=True)
    """Options that a command needs besides, to try the same commit by the same card."""

    @property
    def recorded(self) -> record.Card:
        return record.Card(
            name=self.name, label=self.label, hash=self.sha256, build=self.build.kind, reference=self.reference
        )

    @property
    def target(self) -> CaseFacts:
        return (self.suites["pr"] or self.suites["cpu"])[0]

    @property
    def timed(self) -> frozenset[str]:
        return frozenset(case.id for suite in self.suites.values() for case in suite)

    @property
    def cases(self) -> dict[str, CaseFacts]:
        listed = [*self.asked, *self.sanitize, *(case for suite in self.suites.values() for case in suite)]
        return {case.id: case for case in listed}

    def recorded_case(self, case: CaseFacts) -> record.Case:
        by_dtype = TOLERANCES.get(case_axes.dtype(case.axes))
        given = case.tolerance and record.Tolerance(atol=case.tolerance[0], rtol=case.tolerance[1])
        known = case.flops is not None or case.bytes is not None
        return record.Case(
            card=self.name,
            id=case.id,
            axes=dict(case.axes),
            label=case.label,
            work=record.Work(flops=case.flops, bytes=case.bytes) if known else None,
            tolerance=given or by_dtype,
        )


class CardQuestions(Message):
    folder: Path
    cases: dict[str, tuple[dict[str, AxisValue], ...]]
    tiles: tuple[dict[str, int], ...]
    without: tuple[str, ...] = ()


class CardsAnswer(Message):
    """What it says; a card can make it say anything."""

    cards: tuple[CardFacts, ...] = ()
    mistakes: tuple[CardMistake, ...] = ()


@dataclass(frozen=True)
class Cards:
    folder: Path
    cards: tuple[CardFacts, ...]
    mistakes: tuple[CardError, ...] = ()

    def __getitem__(self, name: str) -> CardFacts:
        return next(card for card in self.cards if card.name == name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(card.name for card in self.cards)

    def without_mistakes(self) -> Cards:
        if self.mistakes:
            raise self.mistakes[0]
        return self


@dataclass(frozen=True)
class ChosenCase:
    card: CardFacts
    case: CaseFacts

    @property
    def recorded(self) -> record.Case:
        return self.card.recorded_case(self.case)


def read(
    folder: Path,
    more: Mapping[str, tuple[dict[str, AxisValue], ...]] | None = None,
    tiles: Sequence[Mapping[str, int]] = (),
) -> Cards:
    """The cards in a folder; none where there is none. `more`: cases to describe besides, by card. A card that ends the
    process that reads it is a mistake. Raises KernelgateError where one hangs, or the process is killed from outside.
    """
    if not folder.is_dir():
        return Cards(folder, ())
    if not os.access(folder, os.R_OK | os.X_OK):  # in which pathlib finds nothing
        raise KernelgateError(f"{folder} cannot be read: permission denied")
    asked = CardQuestions(folder=folder, cases=dict(more or {}), tiles=tuple(map(dict, tiles)))
    held = [path for path in sorted(folder.rglob("*.py")) if path.is_file()]
    contents = [(str(path.relative_to(folder)), path.read_bytes()) for path in held]
    key = hashlib.sha256(repr((contents, asked.model_copy(update={"folder": Path()}))).encode()).digest()
    if key not in _READ:
        said = _read(asked)
        if said.mistakes:  # their words may name the folder
            return Cards(folder, said.cards, tuple(CardError(**mistake.model_dump()) for mistake in said.mistakes))
        _READ[key] = said.cards
    return Cards(folder, tuple(_moved(card, folder / card.file.name) for card in _READ[key]))


def _moved(card: CardFacts, file: Path) -> CardFacts:
    doubts = tuple(one.model_copy(update={"file": str(file)}) for one in card.doubts)
    return card.model_copy(update={"file": file, "doubts": doubts})


_READ: dict[bytes, tuple[CardFacts, ...]] = {}
"""What cards say, by their contents and what they were asked: a verb asks several times, of several checkouts."""


def _read(asked: CardQuestions) -> CardsAnswer:
    ended: dict[str, CardMistake] = {}
    while True:
        with WorkerProcess("kernelgate.bench.kernel.card_reader:read", apart=isolation.of_sources()) as worker:
            try:
                said = worker.ask(asked.model_copy(update={"without": tuple(ended)}), CardsAnswer, PATIENCE_S)
                return said.model_copy(update={"mistakes": (*said.mistakes, *ended.values())})
            except WorkerError as error:
                name, why = worker.doing.doing, f"the card cannot be read: {error}"
                if name in ended or not worker.ended_by_work(error):
                    at = asked.folder if worker.doing.loading else asked.folder / name
                    raise KernelgateError(f"{at}: {why}") from None
                ended[name] = CardMistake(file=str(asked.folder / name), line=None, member="", text=why)


def of_checkout(repo: Path, folder: Path | None = None, tiles: Sequence[Mapping[str, int]] = ()) -> Cards:
    """Those in `folder`, which a workflow takes from the default branch, else of the checkout that `repo` is in."""
    return read(folder or git.root(repo) / FOLDER, tiles=tiles)


def none_for(device: str) -> UsageError:
    """Where no card has a case for it: what could be done."""
    where = "a GPU: give one cases" if device == "cuda" else "a CPU: run this where a GPU is, or give one cpu_cases"
    return UsageError(f"no card has cases for {where}")


def select(
    cards: Cards, device: DeviceKind, suite: str | None = None, ids: Iterable[str] = ()
) -> tuple[ChosenCase, ...]:
    """The ids that were asked for (also one that no suite has; CARD/ID where two cards know it), else the suite, else
    the device's default. Raises UsageError for what does not exist, and the first mistake in a card."""
    cards.without_mistakes()
    wanted = tuple(dict.fromkeys(ids))
    if wanted and suite:
        raise UsageError("name either cases or a suite, not both")
    if wanted:
        return _by_id(cards, wanted)
    name = suite or DEFAULT_SUITES[device]
    known = sorted({suite for card in cards.cards for suite in card.suites})
    if name not in known:
        raise UsageError(f"there is no suite {name!r}; there are {', '.join(known) or 'no cards'}")
    return tuple(ChosenCase(card, case) for card in cards.cards for case in card.suites.get(name, ()))


def smallest(card: CardFacts, device: DeviceKind) -> ChosenCase:
    """Where a launch and a prologue weigh most: of a GPU's suite `ladder`, else of what the device times by default."""
    listed = (device == "cuda" and card.suites.get("ladder")) or card.suites[DEFAULT_SUITES[device]]
    return ChosenCase(card, min(listed, key=lambda one: case_axes.size(one.axes), default=card.target))


def paths(known: Cards) -> tuple[str, ...]:
    """What the cards build from, and the cards: beginnings of paths below the repository's root."""
    found = (path for paths in sources(known).values() for path in paths)
    return tuple(dict.fromkeys((f"{FOLDER}/", *found)))


def sources(known: Cards) -> dict[str, tuple[str, ...]]:
    """By card, what it builds from: beginnings of paths below the repository's root."""
    found: dict[str, tuple[str, ...]] = {}
    for card in known.cards:
        if isinstance(card.build, Package):
            found[card.name] = (card.build.root, f"src/{card.build.root}")
        else:
            ends = [re.split(r"[*?\[]", pattern, maxsplit=1)[0] for pattern in card.build.sources]
            found[card.name] = tuple(filter(None, ends)) if all(ends) else ("",)
    return found


def planned(
    known: Cards,
    processes: int,
    label: str | None = None,
    target: str | None = None,
    checks: tuple[record.CheckKind, ...] = PLANNED_CHECKS,
) -> record.Expected:
    """What a pull request's whole measurement holds on the GPU `label`, from the default branch's cards."""
    whole = expected(select(known, "cuda") if known.cards else (), processes, label, target, checks)
    listed = tuple(card.model_copy(update={"source": "default branch"}) for card in whole.cards)
    whole = whole.model_copy(update={"cards": listed})
    return whole.model_copy(update={"hash": record.expected_hash(whole)})


def expected(
    chosen: Iterable[ChosenCase],
    processes: int,
    label: str | None = None,
    target: str | None = None,
    checks: tuple[record.CheckKind, ...] = PLANNED_CHECKS,
) -> record.Expected:
    """What a whole measurement of these cases holds: each in so many processes, and the results of the checks. `label`
    and `target`: a particular GPU's label in the policy, and its compute capability."""
    listed = tuple(chosen)
    return record.Expected(
        label=label,
        target=target,
        cards=tuple({one.card.name: one.card.recorded for one in listed}.values()),
        cases=tuple(one.recorded for one in listed),
        checks=checks,
        processes=processes,
    )


def _by_id(cards: Cards, wanted: Sequence[str]) -> tuple[ChosenCase, ...]:
    parsed = [(card, case_axes.case_id(axes), axes) for card, axes in (_named(cards, text) for text in wanted)]
    new: dict[str, list[dict[str, Any]]] = {}
    for card, id_, axes in parsed:
        if id_ not in card.cases:
            new.setdefault(card.name, []).append(axes)
    again = {card.name: with_cases(card, new[card.name]) if card.name in new else card for card, _, _ in parsed}
    return tuple(ChosenCase(again[card.name], again[card.name].cases[id_]) for card, id_, _ in parsed)


def with_cases(card: CardFacts, more: Iterable[dict[str, AxisValue]]) -> CardFacts:
    """The card with facts about cases that no suite of it has."""
    return read(card.file.parent, {card.name: tuple(more)}).without_mistakes()[card.name]


def _named(cards: Cards, text: str) -> tuple[CardFacts, dict[str, Any]]:
    name, _, case_id = text.rpartition("/")
    among = [card for card in cards.cards if name in ("", card.name)]
    known = [card for card in among if case_id in card.cases]
    found = [(card, dict(card.cases[case_id].axes)) for card in known] or [
        # A case that no suite has is read by the pattern of one that the card lists.
        (card, axes)
        for card in among
        if (axes := next(filter(None, (case_axes.parse(case_id, case.axes) for case in card.cases.values())), None))
    ]
    if len(found) > 1:
        ways = " or ".join(f"{card.name}/{case_id}" for card, _ in found)
        raise UsageError(f"{len(found)} cards have a case {case_id}: write {ways}")
    if not found:
        examples = ", ".join(f"{card.name}: {card.target.id}" for card in cards.cards) or "no cards"
        raise UsageError(f"{text!r} is not a case of any card; cases are written like {examples}")
    return found[0]


TOLERANCES = {name: Tolerance(atol=one.atol, rtol=one.rtol) for name, one in DTYPES.items()}
"""By the dtype of an output."""


def output_tolerance(output: str, case: str) -> Tolerance:
    """The tolerance of an output's dtype; of a float that is computed from coarser floats, theirs."""
    own, inputs = TOLERANCES[output], TOLERANCES[case]
    return max(own, inputs, key=lambda one: one.atol or 0.0) if own.atol and inputs.atol else own
