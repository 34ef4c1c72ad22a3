"""`kernelgate init`: what a repository needs to begin, written from what its sources say."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from kernelgate.bench.core.documentation import page
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.core.files import CARDS
from kernelgate.bench.system import git
from kernelgate.bench.system.beside import version
from kernelgate.ci.commands.options import Answered, answers
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.pipeline import init_files
from kernelgate.ci.pipeline.found_kernels import FoundKernel, Skipped

TOOL = "kernelgate/kernelgate@v0"
MOST_CARDS = 12
"""That are written unasked; of more kernels somebody names those that matter."""
MOST_SKIPPED = 10


@dataclass(frozen=True)
class InitAnswer:
    kernels: tuple[FoundKernel, ...]
    skipped: tuple[str, ...]
    written: tuple[str, ...]
    left: tuple[str, ...]
    """What is to be said by hand, each as FILE:LINE: TEXT."""
    out_of_date: tuple[str, ...]


@click.command()
@click.argument("names", nargs=-1, metavar="[KERNEL]...")
@click.option("--check", is_flag=True, help="Write nothing; say what is missing or out of date.")
@click.option("--tool", default=TOOL, show_default=True, help="Whose workflows are called: OWNER/NAME@TAG.")
@answers(InitAnswer)
def init(names: tuple[str, ...], check: bool, tool: str) -> Answered:
    """Find the kernels of this repository, and write a card for each, the workflows and a policy.

    Finds TORCH_LIBRARY, PYBIND11_MODULE, exports of TVM-FFI, what launches a @triton.jit function,
    operators of tritonbench and KernelBot's task.yml. Runs no source and overwrites no file. What the sources do not
    tell is marked OPEN in the card. Of more than 12 kernels, or if there are cards already, only named ones get a card.

    Exit codes: 0 done, or with --check all is up to date, 1 with --check something is not, 2 no kernel found, 64 usage.
    """
    if tool.count("@") != 1 or tool.count("/") != 1:
        raise UsageError(f"--tool {tool}: name a repository and a tag, such as {TOOL}")
    root = git.root(Path.cwd())
    repo = init_files.Repository(root, git.files(root), git.branch_name(root), tool)
    torch = ".".join((version("torch") or "2.11").split(".")[:2])  # what sources of the classic ABI are compiled for
    every = init_files.found(repo, torch)
    kernels = [one for one in every if isinstance(one, FoundKernel)]
    begins = not any((root / CARDS).glob("[!_]*.py"))
    chosen = _chosen(kernels, names, repo, begins or check)
    wanted = init_files.files(repo, chosen, chosen if begins else kernels)
    stale = tuple(init_files.out_of_date(repo, chosen, wanted)) if check else ()
    made = {} if check else init_files.missing(repo, wanted)
    cards = {name: made.get(name) or repo.read(name) for name in wanted if name.startswith(CARDS)}
    told = InitAnswer(
        kernels=tuple(kernels),
        skipped=tuple(f"{one.place}: {one.text}" for one in every if isinstance(one, Skipped)),
        written=tuple(made),
        left=tuple(init_files.open_points(cards)),
        out_of_date=stale,
    )
    files = {root / name: text for name, text in made.items()}
    code = int(bool(stale)) if check else 0 if kernels else 2
    return Answered(told, _said(told, wanted, made, check, names), code, files)


def _chosen(
    kernels: Sequence[FoundKernel], names: Sequence[str], repo: init_files.Repository, all_of_few: bool
) -> list[FoundKernel]:
    """The named ones, or of few all; and those that have a card."""
    known = {one.name for one in kernels}
    if unknown := [name for name in names if name not in known]:
        close = [name for one in unknown for name in difflib.get_close_matches(one, known)] or sorted(known)
        listed = ", ".join(close[:MOST_SKIPPED]) or "none"
        raise UsageError(f"no kernel here is called {', '.join(unknown)}; of {len(known)} found: {listed}")
    every = not names and all_of_few and len(kernels) <= MOST_CARDS
    return [one for one in kernels if every or one.name in names or init_files.card_of(one) in repo.names]


def _said(
    told: InitAnswer, wanted: Mapping[str, str], made: Mapping[str, str], check: bool, names: Sequence[str]
) -> str:
    if check:
        return "\n".join(told.out_of_date) or "up to date"
    lines = [f"{counted(len(told.kernels), 'kernel')} found"]
    if not told.kernels:
        lines.append(f"`kernelgate init -h` says what it looks for; write other cards by hand: {page('cards.md')}")
    lines += [f"  {one.name}: {one.how}, {one.place}" for one in told.kernels if not names or one.name in names]
    for one in told.kernels:  # those of the same name have a number, …
        first, own = re.sub(r"_\d+$", "", one.name), one.called.rpartition(".")[2]  # … which is not of their own
        if first in names and one.name not in (first, *names) and first.endswith(own):
            lines.append(f"  not this {first}: {one.how}, {one.place}; `kernelgate init {one.name}` names it")
    if told.skipped and not names:
        lines += ["without a card:", *(f"  {one}" for one in told.skipped[:MOST_SKIPPED])]
        if more := len(told.skipped[MOST_SKIPPED:]):
            lines.append(f"  and {more} more (--json lists all)")
    lines += ["written:", *(f"  {name}" for name in made)] if made else []
    kept = [name for name in wanted if name not in made]
    lines += [f"left as they are: {', '.join(kept)}"] if kept else []
    if (others := [one.name for one in told.kernels if f"{CARDS}/{one.name}.py" not in wanted]) and not names:
        of, such = counted(len(others), "kernel"), f"kernelgate init {others[0]}"
        lines.append(f"no card is written of {of}: name those that matter, such as: {such}")
    if told.left:
        lines += ["left to say:", *(f"  {one}" for one in told.left)]
        lines.append(f"then: kernelgate cards, and kernelgate try HEAD~1 HEAD --cards {CARDS}")
    return "\n".join(lines)
