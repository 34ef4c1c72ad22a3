"""What `kernelgate history …` tells: with --json each is printed as it stands here. Whoever reads them needs no
database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, PlainSerializer, TypeAdapter

from kernelgate.bench.record import Model
from kernelgate.ci.document.formatting import LARGEST_LOG, as_percent, signed
from kernelgate.ci.history.entry import ComparisonEntry, PointEntry

INDEX_FILE = "index.sqlite"
"""In a store that is a folder."""
Interval = tuple[float, float]
"""95%, in percent of time."""
FlatRow = dict[str, str | int | float | bool | None]
Decision = Literal["accepted", "excluded"]
State = Literal["suspected", "confirmed", "refuted", "accepted"]
Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
Name = Annotated[str, Field(max_length=300)]


def pct(log: float | None) -> float | None:
    """A log change in percent; None where there is none, and where it is beyond every number."""
    return None if log is None or log > LARGEST_LOG else as_percent(log)


# ---- what was measured -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class CaseName:
    """One case of a card on one kind of GPU."""

    repository: str
    card: str
    case: str
    gpu: str

    @property
    def written(self) -> str:
        """As `kernelgate cards` lists it."""
        return "/".join(filter(None, (self.card, self.case)))


IN_PERCENT = PlainSerializer(pct, return_type=float | None)
"""Of a difference of logarithms, as JSON has it."""


class HistoryPoint(PointEntry):
    """What one side of a case took, in which record."""

    record: str
    """By its sha256."""
    made: str | None
    place: int | None
    """Of the commit in the first-parent order of the default branch."""
    error: Annotated[float | None, IN_PERCENT, Field(serialization_alias="error_pct")] = None
    finding: str | None


class HistoryComparison(ComparisonEntry):
    """Two commits in the same processes of a record."""

    record: str
    made: str | None
    place: int | None
    """The head's."""
    effect: Annotated[float, IN_PERCENT, Field(serialization_alias="change_pct")]
    error: Annotated[float | None, IN_PERCENT, Field(serialization_alias="error_pct")] = None
    finding: str | None


@dataclass(frozen=True)
class MeasuredSeries(CaseName):
    """A case in one environment, by the places of its commits, then by time."""

    environment: Mapping[str, str]
    reference: str | None
    """What the side `reference` is, where a card said so."""
    points: tuple[HistoryPoint, ...] = ()
    comparisons: tuple[HistoryComparison, ...] = ()


@dataclass(frozen=True)
class ShownHistory:
    series: tuple[MeasuredSeries, ...]
    schema: Literal["kernelgate.history/1"] = "kernelgate.history/1"


@dataclass(frozen=True)
class ExportedHistory:
    """What `history export` prints, with --json and without."""

    schema: Literal["kernelgate.history-export/1"]
    points: tuple[FlatRow, ...]
    comparisons: tuple[FlatRow, ...]
    events: tuple[FlatRow, ...]
    costs: tuple[FlatRow, ...]
    sessions: tuple[FlatRow, ...] = ()
    """Each with its whole `log`; an export of before they were kept has none."""


# ---- what changed ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """The level was another one at `commit` than at `previous`; the nights do not show where between them."""

    kind: Literal["step", "drift"]
    previous: str
    previous_place: int
    commit: str
    place: int
    environment: Annotated[str, Field(exclude=True)]
    change_pct: float
    interval_pct: Interval
    state: State = "suspected"
    chance: float = 1.0
    """The probability that there is a change at all, as the nights show it."""
    why: str = ""
    series: CaseName = CaseName("", "", "", "")
    pinned: bool = True
    """Whether it was found against a pinned commit, else in times alone."""
    made: str | None = None
    """When `commit` was first measured."""
    commits: int = 1
    """How many come into question: those after `previous`, up to `commit`."""
    author: str | None = None
    subject: str | None = None
    """Of `commit`, as the checkout has it; None where that has not."""

    @property
    def words(self) -> tuple[str, str]:
        """Its size and the interval of it; of a drift not as if one commit had made it."""
        size, interval = signed(self.change_pct, self.interval_pct)
        return (f"{size} slowly" if self.kind == "drift" else size), interval

    @property
    def is_certain(self) -> bool:
        return self.state in ("confirmed", "accepted")


@dataclass(frozen=True)
class ShownChanges:
    """The answer of `history changes`, the oldest first."""

    changes: tuple[Change, ...]
    schema: Literal["kernelgate.changes/1"] = "kernelgate.changes/1"


@dataclass(frozen=True)
class PlannedPair:
    """Two commits to compare, in all cases that suspect them, in the same processes."""

    gpu: str
    previous: str
    commit: str
    cases: tuple[str, ...]
    processes: int
    gpu_seconds: float
    commands: tuple[str, ...]
    """That measure it, and tell the history."""


class ComparedPair(Model):
    """What a run of confirm.yml compares, as its steps read it."""

    name: str
    """What the names of its artifacts end with."""
    gpu: str
    """The runners' label."""
    target: str
    base_sha: Sha
    head_sha: Sha
    cases: str
    processes: str


COMPARED = TypeAdapter(tuple[ComparedPair, ...], config=ConfigDict(defer_build=True))


@dataclass(frozen=True)
class PostponedCase:
    """There was no time for this comparison."""

    gpu: str
    case: str
    previous: str
    commit: str


@dataclass(frozen=True)
class NightPlan:
    """What each kind of GPU is to measure: the answer of `history tonight`."""

    pairs: tuple[PlannedPair, ...]
    """By GPU; of each the most promising first."""
    postponed: tuple[PostponedCase, ...]
    schema: Literal["kernelgate.tonight/1"] = "kernelgate.tonight/1"


# ---- which commit did it ---------------------------------------------------------------------------------------------


class CulpritCase(Model):
    card: Name
    case: Name
    gpu: Name
    change_pct: float
    interval_pct: Interval
    why: Name
    state: Literal["slower", "fixed", "accepted"]
    by: Name = ""
    """The commit that fixed it, or who accepted it; empty while it is slower."""
    record: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Of the comparison of both commits, by its sha256."""

    @property
    def named(self) -> str:
        return "/".join(filter(None, (self.card, self.case)))


class Culprit(Model):
    """One of the commits after `previous`, up to `commit`. A drift is none's: together they made cases slower."""

    kind: Literal["commit", "drift"] = "commit"
    repository: Name
    previous: Sha
    commit: Sha
    commits: Annotated[int, Field(ge=1)]
    """How many come into question."""
    cases: Annotated[tuple[CulpritCase, ...], Field(min_length=1, max_length=10_000)]

    @property
    def is_slower(self) -> bool:
        return any(case.state == "slower" for case in self.cases)

    @property
    def worst_first(self) -> list[CulpritCase]:
        return sorted(self.cases, key=lambda case: -case.change_pct)


@dataclass(frozen=True)
class CommitSearch(CaseName):
    """A confirmed change that lies somewhere among several commits: after `good`, and not after `bad`."""

    good: str
    bad: str
    pairs: tuple[tuple[int, int], ...] = ()
    """Places of commits to compare, those that tell most first."""


class KnownCulprits(Model, validate_by_name=True, validate_by_alias=True):
    """The answer of `history culprits`, and its file `culprits.json`."""

    schema_: Literal["kernelgate.culprits/1"] = Field(alias="schema")
    culprits: tuple[Culprit, ...]
    """The oldest first."""
    searches: tuple[CommitSearch, ...] = ()
    """What is to be searched for before it is told."""


@dataclass(frozen=True)
class AddedRecords:
    added: int
    known: int
    """That the history had already."""
    not_added: dict[str, str]
    """Files that cannot be read, and why; exit code 3."""


@dataclass(frozen=True)
class DecidedCases:
    kind: Decision
    commit: str
    cases: tuple[CaseName, ...]


@dataclass(frozen=True)
class RebuiltIndex:
    index: str
    measurements: int
    lost: tuple[str, ...] = ()
    """What is damaged in the store, a sentence each."""


@dataclass(frozen=True)
class VerifiedHistory:
    files: int
    """That are whole."""
    damaged: tuple[str, ...]
    index: str
    """How it differs from the store; empty where it does not."""


@dataclass(frozen=True)
class CondensedRecords:
    """The answer of `history condense`. Bytes as they lie in the store, packed."""

    condensed: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    with_every_sample: int = 0
    left: tuple[str, ...] = ()
    """Why records were left as they are; exit code 3."""


@dataclass(frozen=True)
class WrittenSite:
    index: str
    """The page to open."""
    cases: int
