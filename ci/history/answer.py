"""What `kernelgate history …` answers, for programs: docs/schemas/history-*.schema.json. docs/history.md tells of it.

Models alone, without the index behind them: the list of all answers is there also where the extra `history` is not.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kernelgate.ci.document.answer import VerbAnswer

Interval = tuple[float, float]
"""95%, in percent of time."""
FlatRow = dict[str, str | int | float | bool | None]


class AddedRecords(VerbAnswer):
    """The answer of `history add`."""

    added: int
    known: int
    """That the history had already."""
    not_added: dict[str, str]
    """Files that cannot be read, and why; exit code 3."""


class ShownPoint(VerbAnswer):
    record: str
    """By its sha256."""
    made: str | None
    side: str
    commit: str | None
    place: int | None
    """Of the commit in the first-parent order of the default branch."""
    us: float
    error_pct: float | None
    processes: int
    rounds: int
    finding: str | None


class ShownComparison(VerbAnswer):
    record: str
    made: str | None
    base: str
    head: str | None
    place: int | None
    """The head's."""
    change_pct: float | None
    """Positive is slower."""
    interval_pct: Interval | None
    error_pct: float | None
    spread_pct: float | None
    noise_pct: float | None
    processes: int
    status: str | None
    finding: str | None


class SeriesShown(VerbAnswer):
    repository: str
    card: str
    case: str
    gpu: str
    environment: dict[str, str]
    reference: str | None
    points: tuple[ShownPoint, ...]
    comparisons: tuple[ShownComparison, ...]


class ShownHistory(VerbAnswer):
    """The answer of `history show`."""

    schema_: Literal["kernelgate.history/1"] = Field(default="kernelgate.history/1", alias="schema")
    series: tuple[SeriesShown, ...]


class ChangedSeries(VerbAnswer):
    repository: str
    card: str
    case: str
    gpu: str


class ChangeShown(VerbAnswer):
    series: ChangedSeries
    commit: str
    previous: str
    """The level is another one at `commit` than at `previous`."""
    change_pct: float
    interval_pct: Interval
    state: Literal["suspected", "confirmed", "refuted", "accepted"]
    kind: Literal["step", "drift"]
    why: str
    pinned: bool
    """Whether it was found against a pinned commit, else in times alone."""


class ShownChanges(VerbAnswer):
    """The answer of `history changes`, the oldest first."""

    schema_: Literal["kernelgate.changes/1"] = Field(default="kernelgate.changes/1", alias="schema")
    changes: tuple[ChangeShown, ...]


class PairTonight(VerbAnswer):
    gpu: str
    previous: str
    commit: str
    cases: tuple[str, ...]
    processes: int
    gpu_seconds: float
    commands: tuple[str, ...]


class PostponedCase(VerbAnswer):
    gpu: str
    case: str
    previous: str
    commit: str


class ShownTonight(VerbAnswer):
    """The answer of `history tonight`."""

    schema_: Literal["kernelgate.tonight/1"] = Field(default="kernelgate.tonight/1", alias="schema")
    pairs: tuple[PairTonight, ...]
    postponed: tuple[PostponedCase, ...]


class CulpritCaseShown(VerbAnswer):
    card: str
    case: str
    gpu: str
    change_pct: float
    interval_pct: Interval
    why: str
    state: Literal["slower", "fixed", "accepted"]
    by: str
    record: str | None
    """Of the comparison, by its sha256."""


class CulpritShown(VerbAnswer):
    repository: str
    previous: str
    commit: str
    commits: int
    """How many come into question."""
    cases: tuple[CulpritCaseShown, ...]


class SearchShown(VerbAnswer):
    gpu: str
    card: str
    case: str
    good: str
    bad: str


class ShownCulprits(VerbAnswer):
    """The answer of `history culprits`, the oldest first."""

    schema_: Literal["kernelgate.culprits/1"] = Field(default="kernelgate.culprits/1", alias="schema")
    culprits: tuple[CulpritShown, ...]
    searches: tuple[SearchShown, ...]
    """Confirmed changes among several commits."""


class RebuiltIndex(VerbAnswer):
    """The answer of `history rebuild`."""

    index: str
    measurements: int


class CondensedRecords(VerbAnswer):
    """The answer of `history condense`."""

    condensed: int
    bytes_before: int
    bytes_after: int
    with_every_sample: int
    left: tuple[str, ...]
    """Why records were left as they are; exit code 3."""


class ExportedHistory(VerbAnswer):
    """What `history export` prints, with --json and without; its rows are flat, as in the Parquet files."""

    schema_: Literal["kernelgate.history-export/1"] = Field(alias="schema")
    points: tuple[FlatRow, ...]
    comparisons: tuple[FlatRow, ...]
    events: tuple[FlatRow, ...]
    costs: tuple[FlatRow, ...]
    sessions: tuple[FlatRow, ...] = ()
    """Each with its whole `log`; an export of before they were kept has none."""


class ExportedFiles(VerbAnswer):
    """The answer of `history export --format parquet`."""

    files: tuple[str, ...]


class ImportedTimes(VerbAnswer):
    """The answer of `history import`."""

    runs: int = 0
    new: int = 0
    """Of the runs, those that the history had not."""
    times: int = 0
    left_out: int = 0
    """Results that are no times, or failed."""
    spreads: int = 0
    """Cases whose spreads were taken, of an earlier kernelgate's file."""
    sessions: int = 0
    """Of another history's export."""
    new_sessions: int = 0


class WrittenSite(VerbAnswer):
    """The answer of `history site`."""

    index: str
    """The page to open."""
    cases: int
