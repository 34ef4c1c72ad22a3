"""What a search for a commit answered, as untrusted data: the machine that wrote it had run a contributor's code.

It is what `kernelgate bisect --answer` writes, held to its form and its size, to what was asked, and to the range: a
commit that is named and shown is one of it, by GitHub's own word. Of a submodule's commits only the form is known.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from kernelgate.bench.core.errors import UsageError, faults
from kernelgate.bench.record import Model
from kernelgate.ci.document.escape import visible
from kernelgate.ci.github import plan, untrusted_artifact
from kernelgate.ci.github.bisect_request import SearchKind
from kernelgate.ci.github.client import Bot
from kernelgate.ci.github.untrusted_artifact import FailureNote, RefusedError

ANSWER, FAILURE = "answer.json", "failure.json"
MAX_BYTES = 1024 * 1024
MAX_SHOWN = 8
"""Commits that are named in a list; those alone are asked for on GitHub."""
MAX_DEPTH = 4
"""Of submodules in submodules."""

Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Said = Annotated[str, Field(max_length=10_000)]
"""Text that is shown in a code span, cut."""
CaseId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./=-]{0,299}$")]
Chance = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Percent = Annotated[float, Field(ge=-100, le=1e9, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=1_000_000, strict=True)]
Shas = Annotated[tuple[Sha, ...], Field(max_length=10_000)]
SteppedOver = Annotated[dict[Sha, Said], Field(max_length=10_000)]


class NotSearched(Model):
    """Why the commits of a submodule were not searched."""

    why: Said


class ChangeOf(Model):
    commit: Sha
    change_pct: Percent


class TimedAnswer(Model):
    case: CaseId
    found: Literal["found", "several", "none", "open"]
    culprits: Shas
    chance: Chance
    change_pct: Percent
    interval_pct: tuple[Percent, Percent]
    several: Annotated[tuple[ChangeOf, ...], Field(max_length=MAX_SHOWN)]
    stepped_over: SteppedOver
    processes: Count
    inside: TimedInside | NotSearched | None = None


class TimedInside(TimedAnswer):
    submodule: Said


class FailingAnswer(Model):
    case: CaseId
    seed: Annotated[int, Field(ge=0, lt=1 << 63, strict=True)]
    found: Literal["found", "none", "open"]
    culprits: Shas
    chance: Chance
    fault: Said
    repeat: Said
    failed: Count
    runs: Count
    passes: Count
    stepped_over: SteppedOver
    inside: FailingInside | NotSearched | None = None


class FailingInside(FailingAnswer):
    submodule: Said


class NothingFails(Model):
    """No case fails at the bad end."""

    found: Literal["none"]
    culprits: Annotated[tuple[Sha, ...], Field(max_length=0)]
    why: Said


class CompiledAnswer(Model):
    last_that_compiles: Sha
    culprits: Annotated[tuple[Sha], Field()]
    why: Said
    inside: CompiledInside | NotSearched | None = None


class CompiledInside(CompiledAnswer):
    submodule: Said


Found = TimedAnswer | FailingAnswer | NothingFails | CompiledAnswer
_FORMS: dict[SearchKind, Any] = {
    "time": TypeAdapter(TimedAnswer),
    "fuzz": TypeAdapter(FailingAnswer | NothingFails),
    "build": TypeAdapter(CompiledAnswer),
}


def read(folder: Path, kind: SearchKind) -> Found | FailureNote | None:
    """The answer in a folder, else why there is none; None where not even that is there. Raises RefusedError."""
    if (data := _bytes(folder / ANSWER)) is not None:
        untrusted_artifact.plain_json(data, ANSWER)
        try:
            found: Found = _FORMS[kind].validate_json(data)
        except ValidationError as error:
            raise RefusedError(f"the answer is refused: it does not fit its schema: {visible(faults(error))}") from None
        if len(levels(found)) > MAX_DEPTH:
            raise RefusedError(f"the answer is refused: submodules lie more than {MAX_DEPTH - 1} deep in it")
        return found
    note = _bytes(folder / FAILURE)
    return untrusted_artifact.checked_failure(note, "the search's note") if note is not None else None


def levels(found: Found) -> list[Found]:
    """The answer, that in the submodule that the culprit moves, and so on."""
    every: list[Found] = [found]
    while isinstance(inner := getattr(every[-1], "inside", None), TimedAnswer | FailingAnswer | CompiledAnswer):
        every.append(inner)
    return every


def shown(found: Found) -> list[str]:
    """The repository's commits that a comment names as found."""
    several = [one.commit for one in found.several] if isinstance(found, TimedAnswer) else []
    last = [found.last_that_compiles] if isinstance(found, CompiledAnswer) else []
    return list(dict.fromkeys([*found.culprits[:MAX_SHOWN], *several, *last]))


def hold(bot: Bot, found: Found, ends: tuple[str, str], case: str) -> None:
    """Raises RefusedError where it is about another case, or names no commit, or one that is not in the range."""
    own = getattr(found, "case", "")
    if case and own and own != case and not own.endswith(f"/{case}"):
        raise RefusedError(f"the answer is refused: it is about {visible(own, 80)}, and {case} was asked for")
    if getattr(found, "found", "") == "found" and not getattr(found, "culprits", ()):
        raise RefusedError("the answer is refused: it names no commit that was found")
    good, bad = ends
    for sha in shown(found):
        first = isinstance(found, CompiledAnswer) and sha == found.last_that_compiles == good
        if not first and (sha == good or not _is_between(bot, sha, good, bad)):
            raise RefusedError(f"the answer is refused: {sha[:12]} is no commit after {good[:12]} up to {bad[:12]}")


def _is_between(bot: Bot, sha: str, good: str, bad: str) -> bool:
    try:
        plan.commit(bot, sha)
    except UsageError:
        return False
    return plan.merge_base(bot, sha, bad) == sha and plan.merge_base(bot, good, sha) == good


def _bytes(path: Path) -> bytes | None:
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise RefusedError(f"the answer is refused: {path.name} is not a plain file")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RefusedError(f"{path.name} cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise RefusedError(f"the answer is refused: {path.name} has more than {MAX_BYTES} bytes")
    return data
