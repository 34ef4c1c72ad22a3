"""Where a report's links lead: commits, their difference, the pull request, the page, the documentation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kernelgate.bench.core.documentation import page
from kernelgate.bench.record import Run
from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import shell
from kernelgate.ci.document.model import Code, Line, Link, Piece


@dataclass(frozen=True)
class Links:
    """Addresses that GitHub gave us; all None where a report is made outside of it."""

    repository: str | None = None
    """Such as https://github.com/owner/name."""
    pull: str | None = None
    """Of the pull request, whose first lines are the description."""
    page: str | None = None
    run: str | None = None

    @property
    def on_github(self) -> bool:
        return self.repository is not None


NO_LINKS = Links()
TRY = "try"
MAX_COMMAND = 500
"""Characters of a command that is worth showing: a longer one cannot be meant for a person."""


def base_option(run: Run, digits: int = 12) -> tuple[str, ...]:
    return ("--base", run.base_sha[:digits]) if run.base_sha and formatting.is_commit(run.base_sha) else ()


def same_here(run: Run, head: str, python: bool = True) -> tuple[str, ...]:
    """What a command needs besides, to see the same on this machine; `head`: its option that names the head; `python`:
    whether it takes one."""
    sha = run.head_sha if run.event == TRY and run.head_sha and formatting.is_commit(run.head_sha) else None
    pythons = ("--python", run.pythons[-1]) if run.pythons and python else ()
    return (*((head, sha[:12]) if sha else ()), *(("--cards", run.cards) if run.cards else ()), *pythons)


def on_cases(verb: str, run: Run, cases: Iterable[str], *more: str, base: tuple[str, ...] | None = None) -> str:
    """A command on this machine, of the same sides and of these cases; of all where that would be too long to be read.
    `base`: another base, as an option."""
    words = ("kernelgate", verb, *(base_option(run) if base is None else base), *same_here(run, "--head"))
    one = shell(*words, *(word for case in cases for word in ("--case", case)), *more)
    return one if len(one) <= MAX_COMMAND else shell(*words, *more)


def as_here(line: Line, run: Run) -> Line:
    """The line, each bare command of which is about the same sides and cards, on this machine."""

    def whole(piece: Piece) -> Piece:
        match piece.text.split() if isinstance(piece, Code) else ():
            case ["kernelgate", "cards"]:
                return Code(shell("kernelgate", "cards", *(("--cards", run.cards) if run.cards else ())))
            case ["kernelgate", verb]:
                base = base_option(run) if verb != "build" and run.event == TRY else ()
                head = "--ref" if verb in ("build", "fuzz", "sanitize") else "--head"
                given = same_here(run, head, python=verb in ("bench", "fuzz", "profile"))
                return Code(shell("kernelgate", verb, *base, *given), most=500)
        return piece

    return tuple(map(whole, line))


def whole_again(run: Run, fixed: bool = False, digits: int = 12, base: tuple[str, ...] = ()) -> str:
    """The command that does all of it again, on this machine; `fixed`: with the working tree as the head; `base`: with
    another base, as an option."""
    base = base or base_option(run, digits)
    names = ("--env-a", "--env-b") if len(run.pythons) > 1 else ("--python",)
    pythons = [word for pair in zip(names, run.pythons, strict=False) for word in pair]
    more = (*(("--cards", run.cards) if run.cards else ()), *pythons)
    if run.event == TRY and run.head_sha and base and not fixed:
        return shell("kernelgate", TRY, *base[1:], run.head_sha[:12], *more)
    return shell("kernelgate", "pr", *base, *more)


def docs(text: str, place: str) -> Link:
    """`place`: file and heading, such as "comment.md#accept"."""
    return Link(text, page(place))


def commit(sha: str | None, unknown: str, links: Links) -> Line:
    """A commit as people write it, linked where it is on GitHub."""
    if sha and formatting.is_commit(sha) and links.repository:
        return (Link(sha[:7], f"{links.repository}/commit/{sha}"),)
    return (formatting.commit(sha, unknown),)


def diff(run: Run, links: Links, text: str = "diff") -> Line:
    """What changed between the two commits that were measured; nothing where they are not known."""
    if not (formatting.is_commit(run.base_sha) and formatting.is_commit(run.head_sha) and links.repository):
        return ()
    # Two dots: what was measured is base against head, whatever their merge base is.
    return (Link(text, f"{links.repository}/compare/{run.base_sha}..{run.head_sha}"),)


def elsewhere(places: Links) -> Line:
    page_: Line = (Link("The page", places.page), " has all of this. ") if places.page else ()
    return (*page_, *((Link("The run", f"{places.run}#artifacts"), " has its files.") if places.run else ()))
