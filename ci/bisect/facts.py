"""What `kernelgate bisect` answers: with --json it is printed as it stands here, and a workflow reads it again."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kernelgate.bench.record import Model

Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Said = Annotated[str, Field(max_length=10_000)]
CaseId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./=-]{0,299}$")]
Chance = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Percent = Annotated[float, Field(ge=-100, le=1e9, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=1_000_000, strict=True)]
Shas = Annotated[tuple[Sha, ...], Field(max_length=10_000)]
SteppedOver = Annotated[dict[Sha, Said], Field(max_length=10_000)]
MOST_CHANGES = 8


class NotSearched(Model):
    """Why the commits of a submodule were not searched."""

    why: Said


class ChangeOf(Model):
    commit: Sha
    change_pct: Percent


class TimedAnswer(Model):
    """Which commit changed a case's time; positive is slower."""

    case: CaseId
    found: Literal["found", "several", "none", "open"]
    culprits: Shas
    chance: Chance
    change_pct: Percent
    interval_pct: tuple[Percent, Percent]
    several: Annotated[tuple[ChangeOf, ...], Field(max_length=MOST_CHANGES)]
    stepped_over: SteppedOver
    processes: Count
    inside: TimedInside | NotSearched | None = None


class TimedInside(TimedAnswer):
    """Of the submodule that the culprit moves."""

    submodule: Said


class FailingAnswer(Model):
    """Which commit made a fuzz case fail."""

    case: CaseId
    seed: Annotated[int, Field(ge=0, lt=1 << 63, strict=True)]
    found: Literal["found", "none", "open"]
    culprits: Shas
    chance: Chance
    fault: Said = ""
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

    found: Literal["none"] = "none"
    culprits: Annotated[tuple[Sha, ...], Field(max_length=0)] = ()
    why: Said


class CompiledAnswer(Model):
    """The last commit that compiles, and the next one, which does not."""

    last_that_compiles: Sha
    culprits: Annotated[tuple[Sha], Field()]
    why: Said
    inside: CompiledInside | NotSearched | None = None


class CompiledInside(CompiledAnswer):
    submodule: Said


BisectAnswer = TimedAnswer | FailingAnswer | NothingFails | CompiledAnswer
