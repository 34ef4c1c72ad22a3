"""What `kernelgate bisect` answers: as it stands with --json, in words without. A workflow reads it again."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kernelgate.bench.record import Model
from kernelgate.ci.bisect.posterior import SHORT
from kernelgate.ci.document import formatting

Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Said = Annotated[str, Field(max_length=10_000)]
CaseId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./=-]{0,299}$")]
Chance = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Percent = Annotated[float, Field(ge=-100, le=1e9, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=1_000_000, strict=True)]
Shas = Annotated[tuple[Sha, ...], Field(max_length=10_000)]
ByCommit = Annotated[dict[Sha, Said], Field(max_length=10_000)]


class NotSearched(Model):
    """Why the commits of a submodule were not searched."""

    why: Said


class ChangeOf(Model):
    """One of several changes: at `commit`, or at one since `after`, the measured one before it."""

    commit: Sha
    after: Sha
    change_pct: Percent


class FoundCommits(Model):
    """What every answer has. Ours are not held to the bounds within which one is read again: `model_construct`."""

    culprits: Shas
    subjects: ByCommit
    """Of the culprits."""
    submodule: Said = ""
    """The path of the one whose commits these are; empty for the repository's own."""


class _Searched(FoundCommits):
    case: CaseId
    found: Literal["found", "several", "none", "open"]
    chance: Chance
    ends: tuple[Sha, Sha]
    """The good one and the bad one."""
    commits: Count
    tried: Count
    """Of them."""
    stepped_over: ByCommit

    @property
    def exit_code(self) -> int:
        """0 found, 2 the ends do not differ, 3 it could not be told."""
        return {"none": 2, "open": 3}.get(self.found, 0)


class TimedAnswer(_Searched):
    """Which commit changed a case's time; positive is slower."""

    change_pct: Percent
    interval_pct: tuple[Percent, Percent]
    several: Annotated[tuple[ChangeOf, ...], Field(max_length=8)]
    processes: Count
    inside: TimedAnswer | NotSearched | None = None
    """Of the submodule that the culprit moves."""


class FailingAnswer(_Searched):
    """Which commit made a fuzz case fail."""

    seed: Annotated[int, Field(ge=0, lt=1 << 63, strict=True)]
    found: Literal["found", "none", "open"]
    fault: Said = ""
    repeat: Said
    """The command that runs the trial again."""
    failed: Count
    runs: Count
    passes: Count
    """How often a commit must pass to be called good."""
    inside: FailingAnswer | NotSearched | None = None


class NothingFails(Model):
    """No case fails at the bad end."""

    found: Literal["none"] = "none"
    culprits: Annotated[tuple[Sha, ...], Field(max_length=0)] = ()
    why: Said


class CompiledAnswer(FoundCommits):
    """The last commit that compiles, and the next one, which does not."""

    last_that_compiles: Sha
    culprits: tuple[Sha]
    why: Said
    inside: CompiledAnswer | NotSearched | None = None


Found = TimedAnswer | FailingAnswer | CompiledAnswer
BisectAnswer = Found | NothingFails


def text(found: Found) -> str:
    """The answer first; then what it rests on, and what was found in the submodule that the culprit moves."""
    if isinstance(found, CompiledAnswer):
        broken = found.culprits[0]
        head = f"{found.last_that_compiles[:SHORT]} compiles, {broken[:SHORT]} {found.subjects.get(broken, '')}"
        lines = [f"{head} does not:", f"  {found.why}"]
    else:
        lines = _timed(found) if isinstance(found, TimedAnswer) else _failing(found)
        skipped = (one for one in found.stepped_over.items() if one[0] not in found.culprits)
        lines += [f"Stepped over {sha[:SHORT]}: {why}" for sha, why in skipped]
    if isinstance(found.inside, NotSearched):
        lines.append(f"Which commit of a submodule it was is not known: {found.inside.why}")
    elif found.inside is not None:
        lines.append(f"It moves the submodule {found.inside.submodule}:")
        lines += [f"  {line}" for line in text(found.inside).split("\n")]
    return "\n".join(lines)


def progress(now: TimedAnswer) -> str:
    if now.found == "none":
        return "the ends do not differ"
    if now.found == "several" or not now.culprits:
        return "more than one commit changed the time"
    first, last = now.culprits[0][:SHORT], now.culprits[-1][:SHORT]
    where = first if first == last else f"one of {len(now.culprits)} from {first} to {last}"
    return f"{formatting.chance(now.chance)} that it is {where}, {change(now.change_pct, now.interval_pct)}"


def change(pct: float, interval: tuple[float, float]) -> str:
    """Such as "1.02% slower (0.91 to 1.13%)"."""
    low, high = sorted(map(abs, interval))
    digits = 2 if abs(pct) < 10 else 0
    return f"{abs(pct):.{digits}f}% {'slower' if pct > 0 else 'faster'} ({low:.{digits}f} to {high:.{digits}f}%)"


def _timed(found: TimedAnswer) -> list[str]:
    if found.found == "none":
        low, high = (formatting.percent(pct, 2, sign=True) for pct in found.interval_pct)
        measured = f" ({low} to {high})" if found.processes else ": what is built is the same at both"
        good, bad = (sha[:SHORT] for sha in found.ends)
        lines = [f"{found.case}: {good} and {bad} take the same time{measured}"]
    elif found.found == "several" and found.several:
        lines = [f"{found.case}: more than one commit changed the time ({formatting.chance(found.chance)})"]
        for one in found.several:
            size = formatting.percent(one.change_pct, 2, sign=True)
            lines.append(f"  {size} between {one.after[:SHORT]} and {one.commit[:SHORT]}")
        lines.append("Search each part by itself.")
    elif found.found == "open":
        lines = [f"{found.case}: not found; {progress(found)}"]
    else:
        size = change(found.change_pct, found.interval_pct)
        lines = [f"{found.case}: {size}, {formatting.chance(found.chance)}", *_culprits(found, "measured")]
    if not found.processes:
        return [*lines, "Nothing had to be measured."]
    return [*lines, f"Measured {found.tried} of {found.commits} commits, {found.processes} times side by side."]


def _failing(found: FailingAnswer) -> list[str]:
    about = f"{found.case} (seed {found.seed})"
    bad = found.ends[1][:SHORT]
    if found.found == "none":
        return [f"{about}: passes in {found.runs} of {found.runs} runs at {bad}"]
    if not found.culprits:
        lines = [f"{about}: not found; no commit touches what the kernel is built from"]
    else:
        answer = "fails since" if found.found == "found" else "not found; most likely fails since"
        lines = [f"{about}: {answer}, {formatting.chance(found.chance)}", *_culprits(found, "tried")]
        lines += [f"  {found.fault}", f"  repeat: {found.repeat}"]
    often = f"It fails in {found.failed} of {found.runs} runs at {bad}; a commit was called good after {found.passes}"
    return [*lines, f"{often} that passed. Tried {found.tried} of {found.commits} commits."]


def _culprits(found: TimedAnswer | FailingAnswer, done: str) -> list[str]:
    lines = []
    for sha in found.culprits:
        note = f" (stepped over: {found.stepped_over[sha]})" if sha in found.stepped_over else ""
        lines.append(f"  {sha[:SHORT]} {found.subjects.get(sha, '')}{note}")
    if len(lines) > 1:
        lines.append(f"These cannot be told apart: nothing between them can be {done}.")
    return lines
