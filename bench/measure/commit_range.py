"""The commits of a range, one after the other: of the repository, or of a submodule that a commit of it moves."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelgate.bench.build.library import Libraries, Library
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.kernel import cards, commit, compared
from kernelgate.bench.kernel.cards import CardFacts, Cards
from kernelgate.bench.kernel.commit import HowToBuild
from kernelgate.bench.system import git
from kernelgate.bench.system.progress import say

DISK_FULL = os.strerror(errno.ENOSPC)
"""It says nothing about the commit that could not be compiled."""
SHORT = 12
"""Digits of a commit."""


@dataclass(frozen=True)
class CommitRange:
    """Commits by first parents, the good end first."""

    repo: Path
    """The root of the checkout."""
    shas: tuple[str, ...]
    submodule: str = ""
    """The path of the submodule whose commits these are; empty for the repository's own."""
    commit: str = ""
    """The repository's commit that each of the submodule's is put into."""
    pins: Mapping[str, str] = field(default_factory=dict)
    """The commits of submodules in which the submodule lies, by their paths."""

    @property
    def last(self) -> int:
        return len(self.shas) - 1

    def build(self, place: int, how: HowToBuild | None = None) -> Libraries:
        """The libraries of a commit. Raises as build_commit does."""
        if not self.submodule:
            return commit.build_commit(self.repo, self.shas[place], how)
        return commit.build_commit(self.repo, self.commit, how, {**self.pins, self.submodule: self.shas[place]})

    def subject(self, place: int) -> str:
        """The first line of a commit's message."""
        return git.subject(self.repo / self.submodule, self.shas[place])

    def touching(self, paths: Sequence[str]) -> frozenset[int]:
        """The commits that change what begins with one of these paths of the repository."""
        here = list(_below(self.submodule, paths)) if self.submodule else paths
        if not here:
            return frozenset()
        found = git.first_parents(self.repo / self.submodule, self.shas[0], self.shas[-1], here)
        return frozenset(map(self.shas.index, found))

    def moved(self, place: int) -> dict[str, tuple[str, str]]:
        """The submodules that a commit moves: by path, the old and the new commit."""
        own = self.repo / self.submodule
        before, after = (git.submodules(own, self.shas[at]) for at in (place - 1, place))
        return {path: (before[path], sha) for path, sha in after.items() if path in before and before[path] != sha}

    def inside(self, place: int, path: str, ends: tuple[str, str]) -> CommitRange:
        """The commits of a submodule from one that this commit had to the other that it has.

        Raises UsageError where they are not there, or are no range.
        """
        whole = f"{self.submodule}/{path}".lstrip("/")
        own = self.repo / whole
        if not (own / ".git").exists():
            raise UsageError(f"this checkout is without {whole}: run `git submodule update --init {whole}`")
        if lacking := [one for one in ends if not git.is_here(own, one)]:
            how = "--unshallow" if git.is_shallow(own) else "--all"
            raise UsageError(f"{whole} has no commit {lacking[0][:SHORT]}: run `git -C {whole} fetch {how}`")
        if git.is_shallow(own) and not git.is_ancestor(own, *ends):
            raise UsageError(f"the history of {whole} is not whole: run `git -C {whole} fetch --unshallow`")
        pins = {**self.pins, self.submodule: self.shas[place]} if self.submodule else {}
        return CommitRange(self.repo, span(own, *ends), whole, self.commit or self.shas[place], pins)


def between(repo: Path, good: str, bad: str) -> CommitRange:
    """The commits after `good` up to `bad`, and `good`. Raises UsageError where they are not on one line."""
    root = git.root(repo)
    return CommitRange(root, span(root, good, bad))


def span(repo: Path, good: str, bad: str) -> tuple[str, ...]:
    """The commits from `good` to `bad` along first parents. Raises UsageError where they are not on one line."""
    old, new = git.resolve(repo, good), git.resolve(repo, bad)
    good, bad = (one[:SHORT] if one in (old, new) else one for one in (good, bad))
    if old == new:
        raise UsageError(f"{good} and {bad} are the same commit, {old[:SHORT]}: there is nothing between them")
    if not git.is_ancestor(repo, old, new):
        turned = "; they are the other way round" if git.is_ancestor(repo, new, old) else ""
        raise UsageError(f"{good} is no ancestor of {bad}{turned}: name a good commit that {bad} came from")
    listed = git.first_parents(repo, old, new)
    before = git.parent(repo, listed[0])
    if before != old:
        instead = f": name {before[:SHORT]}, which is" if before else ""
        raise UsageError(f"{good} came to {bad} by a merge and is not on its line of first parents{instead}")
    return (old, *listed)


@dataclass
class BuiltCommits:
    """One card's libraries of the commits of a range, as far as they are built."""

    range: CommitRange
    card: CardFacts
    """The checkout's, which says what is right and gives the inputs."""
    libraries: dict[int, Library] = field(default_factory=dict)

    @property
    def shas(self) -> tuple[str, ...]:
        return self.range.shas

    def build(self, place: int) -> str | None:
        """Compiles a commit; why it cannot be called, else None. Raises KernelgateError where the disk is full."""
        name = self.card.name
        built = self.range.build(place, HowToBuild(forgiving=True, only=name))
        if DISK_FULL in (why := built.absent.get(name, "")):
            raise KernelgateError(f"{why}; free some (kernelgate cache prune), and search again")
        if name not in built.built:
            return why or f"it has no card {name}{self._brought(place)}"
        library = built.built[name]
        if missing := compared.lacking(compared.own_card(library), self.card):
            return f"its call() takes {', '.join(missing)}, which the card of this checkout does not give"
        self.libraries[place] = library
        return None

    def _brought(self, place: int) -> str:
        """Which commit brings the card."""
        if self.range.submodule or place == self.range.last:
            return ""
        own = f"{cards.FOLDER}/{self.card.name}.py"
        found = git.first_parents(self.range.repo, self.shas[place], self.shas[-1], [own])
        return f", which {found[0][:SHORT]} brings" if found else ""

    def same(self, one: int, other: int) -> bool:
        """Whether nothing that is called differs between two that are built."""
        return self.libraries[one].same_as(self.libraries[other])

    def untouched(self) -> frozenset[int]:
        """The commits that touch nothing that the card is built from, as the checkout and both ends have it."""
        touching = self.range.touching(self.paths())
        where = f" of {self.range.submodule}" if self.range.submodule else ""
        name = self.card.name
        say(f"of {self.range.last} commits{where} after the good end, {len(touching)} touch what {name} is built from")
        return frozenset(range(1, len(self.shas))) - touching

    def paths(self) -> list[str]:
        """Beginnings of all paths that it is built from."""
        paths = set(cards.paths(Cards(self.card.file.parent, (self.card,))))
        for library in self.libraries.values():
            own = compared.own_card(library)
            paths |= set(cards.paths(Cards(own.file.parent, (own,)))) if own else set()
            paths |= {file for files in library.manifest.sources.values() for file in files}
        return sorted(paths)

    def inside(self, place: int) -> CommitRange | str | None:
        """The commits of the submodule that a commit moves, where the card is built from that; else why it is not known
        which of them it was; None where it moves none."""
        prefix = f"{self.range.submodule}/".lstrip("/")
        moved = self.range.moved(place)
        paths = self.paths()
        used = {path: ends for path, ends in moved.items() if list(_below(f"{prefix}{path}", paths))}
        return inside(self.range, place, used)


def inside(whole: CommitRange, place: int, moved: Mapping[str, tuple[str, str]]) -> CommitRange | str | None:
    """The commits of the submodule that a commit moves; else why they are not searched; None where it moves none."""
    if not moved:
        return None
    if len(moved) > 1:
        return f"it moves {len(moved)} submodules at once: {', '.join(sorted(moved))}"
    [(path, ends)] = moved.items()
    try:
        return whole.inside(place, path, ends)
    except UsageError as error:
        old, new = (one[:SHORT] for one in ends)
        return f"it moves the submodule {path} from {old} to {new}, which is not searched: {error}"


def _below(submodule: str, paths: Iterable[str]) -> Iterable[str]:
    """Of beginnings of paths, those that may lie in a submodule, from its root."""
    for path in paths:
        if path.startswith(f"{submodule}/"):
            yield path.removeprefix(f"{submodule}/")
        elif f"{submodule}/".startswith(path):
            yield ""
