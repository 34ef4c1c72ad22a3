"""A commit's kernels, compiled: its own cards say from which sources and how."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from kernelgate.bench import record
from kernelgate.bench.build import build as builder
from kernelgate.bench.build import cache
from kernelgate.bench.build.command import command_sources, run_command
from kernelgate.bench.build.imports import followed
from kernelgate.bench.build.library import ABSENT, CARD, MANIFEST, Libraries, Library, Sides, build_records, manifest_in
from kernelgate.bench.build.sources import (
    CheckOut,
    Command,
    Extension,
    Package,
    Sources,
    package_sources,
    read_sources,
    whole,
)
from kernelgate.bench.core import files
from kernelgate.bench.core.documentation import page
from kernelgate.bench.core.errors import (
    BuildError,
    CardError,
    CompileError,
    KernelgateError,
    NoKernelError,
    OutputError,
)
from kernelgate.bench.kernel import card_check, cards, triton_build
from kernelgate.bench.kernel.card import DeviceKind
from kernelgate.bench.kernel.cards import CardFacts, Cards, CaseFacts, ChosenCase
from kernelgate.bench.system import git
from kernelgate.bench.system.supervise import LIMITS, TimeLimits, side_by_side

CORES_A_COMPILE = 4
"""Cards are compiled side by side on so many cores each: a Triton package takes one process or a few, ninja all."""


@dataclass(frozen=True)
class HowToBuild:
    namespace: str | None = None
    """Where torch.ops will have the operators; None takes a name from the contents."""
    limits: TimeLimits = LIMITS
    forgiving: bool = False
    """A card that cannot be read or compiled is noted, and the others go on: for a base, which need not be right."""
    only: Collection[str] | None = None
    """The names of the cards to compile; None: all."""
    cards: Path | None = None
    """A folder of cards that stand in place of the commit's own."""


@dataclass(frozen=True)
class Tree:
    path: Path
    name: str
    """As errors call it."""
    check_out: CheckOut = whole
    """A commit's tree holds nothing but what was asked for."""

    def own(self, text: str) -> str:
        """With paths as the repository has them: a commit's tree is gone when somebody reads it."""
        return text.replace(f"{self.path}/", "")


def build_commit(
    repo: Path, ref: str = "HEAD", how: HowToBuild | None = None, pins: Mapping[str, str] | None = None
) -> Libraries:
    """The libraries of the commit that `ref` names, compiled unless the cache holds them. `pins`: other commits for its
    submodules, by path; then they are of no commit. Raises as builder.build, and CardError."""
    sha, how = git.resolve(repo, ref), how or HowToBuild()
    with _tree_of(repo, sha, how.cards, pins) as tree:
        return _build(tree, how, None if pins else sha)


@contextmanager
def _tree_of(repo: Path, sha: str, own_cards: Path | None, pins: Mapping[str, str] | None = None) -> Iterator[Tree]:
    moved = "".join(f" with {path} at {pin[:12]}" for path, pin in (pins or {}).items())
    with git.worktree(repo, sha, () if own_cards else (cards.FOLDER,), pins) as path:
        yield Tree(path, f"commit {sha[:12]}{moved}", partial(git.check_out, git.root(repo), sha, path, pins=pins))


def build_tree(tree: Path, how: HowToBuild | None = None) -> Libraries:
    """The libraries of a work tree as it stands; a library's sha is HEAD's where its sources are those of HEAD."""
    return _build(Tree(tree, str(tree)), how or HowToBuild(), None)


def fingerprints(repo: Path, ref: str | None, from_cards: Path | None) -> dict[str, str]:
    """Of each card of a commit, or of the work tree, a hash of it and of all that its library is made from; empty where
    that is not there. Nothing is compiled."""
    found: dict[str, str] = {}
    here = Tree(git.root(repo), "the working tree")
    with nullcontext(here) if ref is None else _tree_of(repo, git.resolve(repo, ref), from_cards) as tree:
        for card in cards.read(from_cards or tree.path / cards.FOLDER).cards:
            found[card.name] = ""
            with suppress(BuildError):
                files = _sources(tree.path, tree, card, tree.check_out)
                if isinstance(card.build, Package) and not card.build.is_in(files):
                    continue
                digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
                if isinstance(card.build, Package):
                    digests = followed(files, card.build, card.file.read_bytes()).digests(files)
                found[card.name] = cache.digest([card.sha256, digests])
    return found


def export(built: Libraries, folder: Path) -> Libraries:
    """Copies of the libraries in folders of their cards, in place of an earlier export's. Raises OutputError where a
    card's folder holds anything else, which would be removed."""
    earlier = {path.parent: made for path in folder.glob(f"*/{MANIFEST}") if (made := manifest_in(path.parent))}
    for place in (folder / name for name in built.built):
        if place not in earlier and place.is_dir() and any(place.iterdir()):
            raise OutputError(f"{place} holds something else than a library of an earlier build: name another folder")
    for place, manifest in earlier.items():
        (place / MANIFEST).unlink()  # first: without it the rest is no library
        for part in (*cache.PARTS[manifest.kind], CARD):
            cache.remove(place / part)
    copies = {name: builder.export(library, folder / name) for name, library in built.built.items()}
    (folder / ABSENT).unlink(missing_ok=True)
    if built.absent or not built.built:
        files.write(folder / ABSENT, json.dumps(dict(built.absent), indent=2) + "\n")
    return Libraries(copies, built.absent)


def _build(tree: Tree, how: HowToBuild, sha: str | None) -> Libraries:
    folder = how.cards or tree.path / cards.FOLDER
    try:
        found = cards.read(folder)
    except KernelgateError as error:  # a card that ends the process that reads it, or never returns
        if not how.forgiving:
            raise KernelgateError(tree.own(str(error))) from None
        return Libraries({}, {path.stem: tree.own(str(error)) for path in sorted(folder.glob("[!_]*.py"))})
    wanted = [card for card in found.cards if how.only is None or card.name in how.only]

    def made(card: CardFacts) -> Library | str:
        try:
            return build_card(tree, card, how, sha)
        except BuildError as error:
            if not how.forgiving:
                raise
            return tree.own(str(error))

    try:
        if not how.forgiving and not found.without_mistakes().cards:
            lacks = f"{how.cards} holds no card" if how.cards else f"{tree.name} has no card in {cards.FOLDER}/"
            more = "" if how.cards else "; `kernelgate init` begins one, --cards names a folder of uncommitted ones"
            raise NoKernelError(f"{lacks}: there is no kernel to compile{more} ({page('cards.md')})")
        each = side_by_side([partial(made, card) for card in wanted], (os.cpu_count() or 1) // CORES_A_COMPILE)
    except CardError as error:
        raise CardError(tree.own(error.file), error.line, error.member, tree.own(error.text)) from None
    by_name = {card.name: one for card, one in zip(wanted, each, strict=True)}
    absent = {Path(mistake.file).stem: tree.own(str(mistake)) for mistake in found.mistakes}
    absent |= {name: one for name, one in by_name.items() if isinstance(one, str)}
    return Libraries({name: one for name, one in by_name.items() if not isinstance(one, str)}, absent)


def _sources(of: Path, tree: Tree, card: CardFacts, check_out: CheckOut) -> Mapping[str, bytes]:
    """The files in `of` that a card's library is made from. Raises BuildError where some that it names are missing."""
    if isinstance(card.build, Extension):
        found: Mapping[str, bytes] = read_sources(of, tree.name, card.name, card.build, check_out).files
    elif isinstance(card.build, Command):
        found = command_sources(of, card.build, check_out)
    else:
        found = package_sources(of, card.build, check_out)
    if pointers := [name for name, data in found.items() if data.startswith(b"version https://git-lfs.github.com/")]:
        raise KernelgateError(f"{tree.name} has pointers of git LFS alone: {', '.join(pointers)}; run `git lfs pull`")
    return found


def build_card(tree: Tree, card: CardFacts, how: HowToBuild | None = None, sha: str | None = None) -> Library:
    """One card's library. `sha`: its commit, else HEAD where the sources are its. Raises as build_commit."""
    how, spec = how or HowToBuild(), card.build
    own = () if how.cards else (f"{cards.FOLDER}/{card.name}.py",)

    def alike(head: Path, check_out: CheckOut) -> bool:
        check_out(own)
        inside = all((head / one).resolve().is_relative_to(head.resolve()) for one in own)  # no link leads out
        same_card = inside and all(hashlib.sha256((head / one).read_bytes()).hexdigest() == card.sha256 for one in own)
        return same_card and _sources(head, tree, card, check_out) == found

    try:
        found = _sources(tree.path, tree, card, tree.check_out)
    except BuildError as error:
        raise card_check.mistake(card, "build", str(error)) from None
    if isinstance(spec, Extension):
        sha = sha or git.unchanged_head(tree.path, [*spec.sources, *found, *own], alike)
        try:
            library = builder.build(Sources(card.name, spec, found), sha, namespace=how.namespace, limits=how.limits)
        except CompileError as error:
            raise _with_submodules(tree, error) from None
    elif isinstance(spec, Command):
        sha = sha or git.unchanged_head(tree.path, [*(spec.sources or ["."]), *own], alike)
        named = [*(("--ref", sha[:12]) if sha else ()), *(("--cards", str(how.cards)) if how.cards else ())]
        again = shlex.join(["kernelgate", "build", *named])
        library = run_command(tree.path, found, card.name, spec, sha, how.limits, again)
    else:
        sha = sha or git.unchanged_head(tree.path, [*spec.places, *found, *own], alike)
        library = triton_build.build_package(found, card, spec, sha, how.limits)
    library = builder.with_card(library, card.file)
    card_check.check_operators(library, card)
    return library


def _with_submodules(tree: Tree, error: CompileError) -> CompileError:
    """A header that is missing in a checkout may lie in a submodule that nobody has checked out."""
    if "No such file" in error.first and tree.check_out is whole:
        with suppress(KernelgateError):  # no repository of git
            root = git.root(tree.path)
            if absent := [one for one in git.submodules(root, "HEAD") if not (root / one / ".git").exists()]:
                hint = f"; not checked out here: {', '.join(absent)} (git submodule update --init --recursive)"
                error.first, error.args = error.first + hint, (f"{error}{hint}",)
    return error


Source = Literal["default branch", "head"]


@dataclass(frozen=True)
class Compared:
    card: CardFacts
    sides: Sides
    source: Source | None
    """Whose card judges; None where a call names no default branch, such as on a developer's machine."""
    notes: tuple[record.Note, ...] = ()

    @property
    def same(self) -> bool:
        return self.sides.base is not None and self.sides.base.same_as(self.sides.head)

    def is_one(self, machine: record.Environment) -> bool:
        """Whether nothing that is measured differs on this machine: of an extension all machine code is the same."""
        if self.same or self.sides.base is None or self.sides.head.manifest.kind != "extension":
            return self.same
        base, head = build_records(self.sides, machine.device)[:2]
        return head.same_call(base)

    @property
    def recorded(self) -> record.Card:
        return self.card.recorded.model_copy(update={"source": self.source})


def judged(judging: Cards, sides: Mapping[str, Sides], source: Source | None = None) -> tuple[Compared, ...]:
    """Every card's libraries with the card of `judging`, else the head's own. Raises KernelgateError without one."""
    judging.without_mistakes()
    return tuple(_judged(judging, name, both, source) for name, both in sides.items())


def select_cases(
    compared: Sequence[Compared], device: DeviceKind, suite: str | None, ids: Sequence[str]
) -> tuple[ChosenCase, ...]:
    """The cases that were asked for, of all cards. Raises UsageError as cards.select does."""
    listed = tuple(one.card for one in compared)
    return cards.select(Cards(listed[0].file.parent, listed), device, suite, ids) if listed else ()


@dataclass(frozen=True)
class CardPlan:
    """What to time, or to compare, of one card. Without a base, the head is timed alone, beside the reference."""

    card: CardFacts
    sides: Sides
    cases: tuple[CaseFacts, ...]

    @property
    def recorded(self) -> tuple[record.Case, ...]:
        return tuple(map(self.card.recorded_case, self.cases))


def card_plans(compared: Sequence[Compared], chosen: Sequence[ChosenCase]) -> tuple[CardPlan, ...]:
    by_name = {one.card.name: one for one in compared}
    cases: dict[str, list[CaseFacts]] = {}
    for one in chosen:
        cases.setdefault(one.card.name, []).append(one.case)
    return tuple(CardPlan(by_name[name].card, by_name[name].sides, tuple(of_card)) for name, of_card in cases.items())


def _judged(judging: Cards, name: str, sides: Sides, source: Source | None) -> Compared:
    own, notes = own_card(sides.head), list[record.Note]()
    if name not in judging.names:
        if own is None:
            raise KernelgateError(f"no card says how {name} is judged: {judging.folder} has none of that name")
        said = "it says itself what is right, and nothing that was measured with it can block"
        text = f"the default branch has no card {name} yet, so the pull request's own is used: {said}"
        notes.append(record.Note(code="no_card_on_base", card=name, text=text))
        card, source = own, source and "head"
    else:
        card = judging[name]
        if own is not None and own.sha256 != card.sha256 and source == "default branch":
            text = f"the card {name} is changed: the default branch's card measured; the new one counts after the merge"
            notes.append(record.Note(code="card_changed", card=name, text=text))
        if own is not None and (missing := lacking(own, card)):
            said = "which the card of the default branch does not give, so that the head was measured by its own card"
            text = f"its call() now takes {', '.join(missing)}, {said}"
            sides = replace(sides, base=None, pinned=None, why_alone=text)
            card, source = own, source and "head"
        for side, name_of in (("base", "base"), ("pinned", "pinned commit")):
            library: Library | None = getattr(sides, side)
            if library and (missing := lacking(own_card(library), card)):
                text = f"the {name_of}'s call() takes {', '.join(missing)}, which the card does not give"
                sides = replace(sides, why_alone=text, **cast(Any, {side: None}))
    if sides.base is None and sides.pinned is None and sides.why_alone:
        notes.append(record.Note(code="head_alone", card=name, text=sides.why_alone))
    return Compared(card, sides, source, tuple(notes))


def own_card(library: Library) -> CardFacts | None:
    return None if library.card is None else cards.read(library.card.parent).without_mistakes()[library.manifest.card]


def followed_paths(library: Library, own: CardFacts) -> set[str]:
    """Where files of a package may lie that decide what the call runs, and the cards; nothing of other libraries."""
    if not isinstance(own.build, Package):
        return set()
    every = (path for path in library.path.rglob("*") if path.is_file())
    files = {path.relative_to(library.path).as_posix(): path.read_bytes() for path in every}
    whole = followed(files, own.build, own.file.read_bytes()).whole
    return {f"{cards.FOLDER}/", *whole, *(f"src/{name}" for name in whole)}


def lacking(own: CardFacts | None, judge: CardFacts) -> tuple[str, ...]:
    """What a commit's call takes and the judging card does not give."""
    if own is None or judge.gives is None:
        return ()
    return tuple(name for name in own.call_needs if name not in judge.gives)
