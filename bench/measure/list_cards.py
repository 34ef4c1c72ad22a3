"""The verb `cards`: what the cards of a repository say, and whether they are right."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Any

from kernelgate.bench.build.sources import Command, Extension
from kernelgate.bench.core.documentation import page
from kernelgate.bench.core.errors import CannotCompileError, CardError, KernelgateError
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


@dataclass(frozen=True)
class ListedCards:
    """What `kernelgate cards --json` prints."""

    cards: tuple[dict[str, Any], ...]
    mistakes: tuple[CardMistake, ...]
    checked: tuple[CheckedCard, ...]

    @property
    def exit_code(self) -> int:
        if self.mistakes or any(card.mistakes for card in self.checked):
            return WRONG
        return RIGHT if self.cards else NONE


def listed(repo: Path, *, check: bool, say: Callable[[str], None], folder: Path | None = None) -> ListedCards:
    """The cards of the checkout, or of `folder`, told line by line, and checked where that is wanted."""
    root, found = git.root(repo), cards.of_checkout(repo, folder)
    if not found.cards and not found.mistakes:
        text = f"{folder or cards.FOLDER}/<name>.py describes a kernel, and `kernelgate init` begins one"
        say(f"there are no cards: {text} ({page('cards.md')})")
    checked, not_compiled = [], None
    for card in found.cards:
        for line in described(card, root):
            say(line)
        if check:
            one, error = _checked(root, card, folder)
            checked.append(one)
            not_compiled = not_compiled or error
            for text in one.mistakes or [f"  {'not compiled' if error else 'right'}: {one.right}"]:
                say(text)
    for mistake in found.mistakes:
        say(_below(str(mistake), root))
    if not_compiled and not found.mistakes and not any(one.mistakes for one in checked):
        raise not_compiled
    if not_compiled:
        say(f"not compiled: {not_compiled}")
    fields = {"name", "label", "file", "build", "suites", "reference"}
    return ListedCards(
        tuple(card.model_dump(mode="json", include=fields) for card in found.cards),
        tuple(CardMistake(**vars(one)) for one in found.mistakes),
        tuple(checked),
    )


def described(card: CardFacts, root: Path) -> Iterator[str]:
    """A card for people: how it is built, its cases by suite, and what is fuzzed."""
    yield f"{card.name} ({card.label}), {_below(str(card.file), root)}"
    if isinstance(card.build, Extension):
        of_torch = f", for torch {card.build.torch} alone" if card.build.torch else ""
        yield f"  build: Extension, {', '.join(card.build.sources)}{of_torch}"
    elif isinstance(card.build, Command):
        yield f"  build: Command, {card.build.line}, for {card.build.package}"
    else:
        yield f"  build: Package, {card.build.name}"
    for name, suite in card.suites.items():
        title, words = f"  {name}: ", " ".join([case.id for case in suite] or ["no cases"])
        yield from textwrap.wrap(
            title + words, LINE, subsequent_indent=" " * len(title), break_long_words=False, break_on_hyphens=False
        )
    listed = [f"{len(card.fuzz[device])} configurations on a {device.upper()}" for device in ("cuda", "cpu")]
    yield f"  fuzz: {', '.join(listed).replace('a CUDA', 'a GPU')}"


def _checked(root: Path, card: CardFacts, folder: Path | None) -> tuple[CheckedCard, CannotCompileError | None]:
    """With what keeps this machine from compiling it; its members are tried all the same."""
    if util.find_spec("torch") is None:
        right = "it can be read; torch is not installed here, so that nothing more was tried"
        return CheckedCard(card.name, (), right), None
    from kernelgate.bench.kernel import card_check, commit

    tried, library, not_compiled = "", None, None
    try:
        try:
            library = commit.build_card(commit.Tree(root, "the working tree"), card, commit.HowToBuild(cards=folder))
        except CannotCompileError as error:
            not_compiled = error
        found, tried = card_check.check(library, card)
        mistakes = [str(one) for one in found]
    except CardError as error:
        mistakes = [str(error)]
    except KernelgateError as error:
        mistakes = [f"{card.file}: build: {error}"]
    return CheckedCard(
        card.name, tuple(_below(one, root) for one in mistakes), None if mistakes else tried
    ), not_compiled


def _below(text: str, root: Path) -> str:
    return text.replace(f"{root}/", "")
