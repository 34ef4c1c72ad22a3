"""The verb `cards`: what the cards of a repository say, and whether they are right."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Any

from kernelgate.bench.build.sources import Extension
from kernelgate.bench.core.errors import CannotCompileError, CardError, CompileError, KernelgateError
from kernelgate.bench.kernel import cards
from kernelgate.bench.kernel.cards import CardFacts, CardMistake
from kernelgate.bench.system import git

RIGHT, WRONG, NONE = 0, 1, 2
LINE = 100


@dataclass(frozen=True)
class CheckedCard:
    card: str
    mistakes: tuple[str, ...]
    right: str | None
    """What was tried and found right."""


@dataclass(frozen=True)
class ListedCards:
    """What `kernelgate cards --json` prints."""

    cards: tuple[dict[str, Any], ...]
    mistakes: tuple[CardMistake, ...]
    """In cards that cannot be read."""
    checked: tuple[CheckedCard, ...]
    """Empty with --list."""

    @property
    def exit_code(self) -> int:
        if self.mistakes or any(card.mistakes for card in self.checked):
            return WRONG
        return RIGHT if self.cards else NONE


def run(repo: Path, *, check: bool, say: Callable[[str], None]) -> int:
    """Lists the cards of the checkout, checks them where that is wanted, and returns the exit code."""
    root, found = git.root(repo), cards.of_checkout(repo)
    if not found.cards and not found.mistakes:
        say(f"there are no cards: {cards.FOLDER}/<name>.py describes a kernel (docs/cards.md)")
        return NONE
    wrong = len(found.mistakes)
    for card in found.cards:
        for line in described(card, root):
            say(line)
        if check:
            mistakes, fine = _checked(root, card)
            wrong += len(mistakes)
            for text in mistakes or [f"  right: {fine}"]:
                say(_below(text, root))
    for mistake in found.mistakes:
        say(_below(str(mistake), root))
    return WRONG if wrong else RIGHT


def listed(repo: Path, *, check: bool) -> ListedCards:
    """The same as data."""
    root, found = git.root(repo), cards.of_checkout(repo)
    fields = {"name", "label", "file", "build", "suites", "reference"}
    checked = []
    for card in found.cards if check else ():
        wrong, fine = _checked(root, card)
        mistakes = tuple(_below(mistake, root) for mistake in wrong)
        checked.append(CheckedCard(card.name, mistakes, None if wrong else fine))
    return ListedCards(
        tuple(card.model_dump(mode="json", include=fields) for card in found.cards),
        tuple(CardMistake(**{name: getattr(one, name) for name in CardMistake.model_fields}) for one in found.mistakes),
        tuple(checked),
    )


def described(card: CardFacts, root: Path) -> Iterator[str]:
    """A card for people: how it is built, its cases by suite, and what is fuzzed."""
    yield f"{card.name} ({card.label}), {_below(str(card.file), root)}"
    if isinstance(card.build, Extension):
        yield f"  build: Extension, {', '.join(card.build.sources)}"
    else:
        yield f"  build: Package, {card.build.name}"
    for name, suite in card.suites.items():
        title = f"  {name}: "
        words = " ".join([case.id for case in suite] or ["no cases"])
        indent = " " * len(title)
        yield from textwrap.wrap(
            title + words, LINE, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    listed = [f"{len(card.fuzz[device])} configurations on a {device.upper()}" for device in ("cuda", "cpu")]
    yield f"  fuzz: {', '.join(listed).replace('a CUDA', 'a GPU')}"


def _checked(root: Path, card: CardFacts) -> tuple[list[str], str]:
    """The mistakes of a card, or what was found right."""
    if util.find_spec("torch") is None:
        return [], "it can be read; torch is not installed here, so that nothing more was tried"
    from kernelgate.bench.kernel import card_check, commit

    try:
        library = commit.build_card(root, "the working tree", card)
        mistakes = [str(one) for one in card_check.check(library, card)]
    except CannotCompileError:
        raise
    except CompileError as error:
        return [f"{card.file}: build: {error}"], ""
    except CardError as error:
        return [str(error)], ""
    except KernelgateError as error:
        return [f"{card.file}: build: {error}"], ""
    return mistakes, card_check.tried(card, library)


def _below(text: str, root: Path) -> str:
    return text.replace(f"{root}/", "")
