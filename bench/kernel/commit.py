"""A commit's kernels, compiled: its own cards say from which sources and how."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelgate.bench.build import build as builder
from kernelgate.bench.build.library import ABSENT, MANIFEST, Libraries, Library
from kernelgate.bench.build.sources import Extension, Sources, package_sources, read_sources
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import BuildError, CardError, KernelgateError, NoKernelError
from kernelgate.bench.kernel import card_check, cards, triton_build
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.loading import line_of
from kernelgate.bench.system import git
from kernelgate.bench.system.supervise import LIMITS, TimeLimits


@dataclass(frozen=True)
class HowToBuild:
    namespace: str | None = None
    """Where torch.ops will have the operators; None takes a name from the contents."""
    limits: TimeLimits = LIMITS
    forgiving: bool = False
    """A card that cannot be read or compiled is noted, and the others go on: for a base, which need not be right."""
    only: str | None = None


def build_commit(
    repo: Path, ref: str = "HEAD", how: HowToBuild | None = None, pins: Mapping[str, str] | None = None
) -> Libraries:
    """The libraries of the commit that `ref` names, compiled unless the cache holds them.

    `pins`: other commits for its submodules, by path; then the libraries are of no commit.

    Raises CompileError where the sources do not compile, and another KernelgateError where that cannot be tried.
    """
    sha = git.resolve(repo, ref)
    moved = "".join(f" with {path} at {pin[:12]}" for path, pin in (pins or {}).items())
    with git.worktree(repo, sha, pins=pins) as tree:
        return _build(tree, f"commit {sha[:12]}{moved}", how or HowToBuild(), None if pins else sha)


def build_tree(tree: Path, how: HowToBuild | None = None) -> Libraries:
    """The libraries of a work tree as it stands; a library's sha is HEAD's where its sources are those of HEAD."""
    return _build(tree, str(tree), how or HowToBuild(), None)


def export(built: Libraries, folder: Path) -> Libraries:
    """Copies of the libraries in folders of their cards, to be carried to the machine that measures.

    Those of an earlier export to this folder are libraries no more.
    """
    for manifest in folder.glob(f"*/{MANIFEST}"):
        manifest.unlink()
    copies = {name: builder.export(library, folder / name) for name, library in built.built.items()}
    (folder / ABSENT).unlink(missing_ok=True)
    if built.absent or not built.built:
        files.write(folder / ABSENT, json.dumps(dict(built.absent), indent=2) + "\n")
    return Libraries(copies, built.absent)


def _build(tree: Path, name: str, how: HowToBuild, sha: str | None) -> Libraries:
    try:
        found = cards.read(tree / cards.FOLDER)
    except KernelgateError as error:  # a card that ends the process that reads it, or never returns
        if not how.forgiving:
            raise KernelgateError(_in_tree(str(error), tree)) from None
        listed = sorted((tree / cards.FOLDER).glob("[!_]*.py"))
        return Libraries({}, {path.stem: _in_tree(str(error), tree) for path in listed})
    if how.forgiving:
        absent = {Path(mistake.file).stem: _in_tree(str(mistake), tree) for mistake in found.mistakes}
        built: dict[str, Library] = {}
        for card in found.cards:
            if how.only in (None, card.name):
                try:
                    built[card.name] = build_card(tree, name, card, how, sha)
                except BuildError as error:
                    absent[card.name] = _in_tree(str(error), tree)
        return Libraries(built, absent)
    if found.mistakes:
        raise _of_the_tree(found.mistakes[0], tree)
    if not found.cards:
        raise NoKernelError(f"{name} has no card in {cards.FOLDER}/: there is no kernel to compile (docs/cards.md)")
    try:
        return Libraries({card.name: build_card(tree, name, card, how, sha) for card in found.cards})
    except CardError as error:
        raise _of_the_tree(error, tree) from None


def build_card(
    tree: Path, name: str, card: CardFacts, how: HowToBuild | None = None, sha: str | None = None
) -> Library:
    """One card's library. `name`: what errors call the tree; `sha`: its commit, else HEAD where the sources are its.

    Raises CardError where the card names sources that are not there, or does not fit its library; else as build_commit.
    """
    how, spec, own = how or HowToBuild(), card.build, f"{cards.FOLDER}/{card.name}.py"

    def sources(of: Path) -> Mapping[str, bytes]:
        if isinstance(spec, Extension):
            return read_sources(of, name, card.name, spec).files
        return package_sources(of, spec.name)

    def alike(head: Path) -> bool:
        return hashlib.sha256((head / own).read_bytes()).hexdigest() == card.sha256 and sources(head) == found

    try:
        found = sources(tree)
    except BuildError as error:
        line = line_of(ast.parse(card.file.read_bytes()), "build")
        raise CardError(str(card.file), line, "build", str(error)) from None
    if isinstance(spec, Extension):
        sha = sha or git.unchanged_head(tree, [*spec.sources, *found, own], alike)
        library = builder.build(Sources(card.name, spec, found), sha, namespace=how.namespace, limits=how.limits)
    else:
        places = [f"{root}{spec.name}{end}" for root in ("", "src/") for end in ("", ".py")]
        sha = sha or git.unchanged_head(tree, [*places, *found, own], alike)
        library = triton_build.build_package(found, card, spec, sha, how.limits)
    library = builder.with_card(library, card.file)
    card_check.check_operators(library, card)
    return library


def _of_the_tree(error: CardError, tree: Path) -> CardError:
    """The error with paths as the repository has them: that of a commit is gone when somebody reads it."""
    return CardError(_in_tree(error.file, tree), error.line, error.member, _in_tree(error.text, tree))


def _in_tree(text: str, tree: Path) -> str:
    return text.replace(f"{tree}/", "")
