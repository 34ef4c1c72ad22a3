"""What `kernelgate scan` found: the commits that changed a kernel's time, in words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pydantic import Field

from kernelgate.bench.record import Model
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Line, Mark, Piece, Report, Section, Strong, Table, Verbatim, table

SPAN = re.compile(r"(\d+)(d|w|mo|y)")
"""A time as `--since` takes it, such as "6mo"."""
SHORT = 9
ROWS = 40


class ScannedChange(Model):
    """A change of time between a measured commit and the one measured before it; positive is slower."""

    commit: str
    subject: str
    before: str
    """The commit that it was compared with."""
    between: tuple[str, ...]
    """Commits that touch the kernel after `before`, of which each may have changed the time as well: not measured."""
    change_pct: float
    interval_pct: tuple[float, float] | None = None
    """95%; None where the change was not confirmed."""
    said: str
    """The verdict of both commits side by side; or why there is none."""
    folder: str = ""
    """With the record, the comment and the page of that comparison."""


class ScannedLevel(Model):
    commit: str
    subject: str
    above_newest_pct: float


class ScannedCase(Model):
    case: str
    touching: int = 0
    """Commits that touch what its kernel is built from."""
    levels: tuple[ScannedLevel, ...] = ()
    """The commits that were measured, oldest first: one of each library."""
    visible_pct: float | None = None
    """The smallest change that would have been seen between any two neighbours."""
    slower: tuple[ScannedChange, ...] = ()
    faster: tuple[ScannedChange, ...] = ()
    unconfirmed: tuple[ScannedChange, ...] = ()
    not_measured: dict[str, str] = Field(default_factory=dict)
    """Commits that do not build, crash or are wrong, and why."""
    no_time: int = 0
    fault: str | None = None

    @property
    def told(self) -> bool:
        return self.fault is None and (len(self.levels) > 1 or self.touching == 0)


class ScanAnswer(Model):
    since: str
    ends: tuple[str, str]
    """The commit before the first one that is scanned, and the newest."""
    commits: int
    cases: tuple[ScannedCase, ...]

    @property
    def slower(self) -> tuple[ScannedChange, ...]:
        return tuple(one for case in self.cases for one in case.slower)

    @property
    def faster(self) -> tuple[ScannedChange, ...]:
        return tuple(one for case in self.cases for one in case.faster)

    @property
    def exit_code(self) -> int:
        """0 no commit made a case slower, 1 one did, 3 of a case it could not be told."""
        return 1 if self.slower else 0 if all(case.told for case in self.cases) else 3


def report(found: ScanAnswer) -> Report:
    remarks = [line for case in found.cases for line in _remarks(case)]
    if records := [f"{one.folder}/run.json" for one in (*found.slower, *found.faster)]:
        remarks.append(("Keep what was measured: ", Code(f"kernelgate history add {' '.join(records)}", 400)))
    sections = tuple(section for case in found.cases for section in _sections(case))
    return Report(_headline(found), _summary(found), tuple(remarks), _changes(found), sections=sections)


def _headline(found: ScanAnswer) -> Line:
    when = f"in the last {found.since}" if SPAN.fullmatch(found.since) else f"since {found.since}"
    slower, faster = (len({one.commit for one in ones}) for ones in (found.slower, found.faster))
    if slower:
        also = f", {faster} made one faster" if faster else ""
        return Mark.SLOWER, f" {formatting.counted(slower, 'commit')} {when} made a kernel slower{also}"
    if faster:
        return Mark.FASTER, f" {formatting.counted(faster, 'commit')} {when} made a kernel faster, none slower"
    if found.exit_code:
        return Mark.UNKNOWN, f" Whether a commit {when} changed a kernel's time could not be told"
    return Mark.SAME, f" No commit {when} is known to have changed a kernel's time"


def _summary(found: ScanAnswer) -> Line:
    old, new = (formatting.commit(end, "") for end in found.ends)
    scanned = []
    for case in found.cases:
        seen = "" if case.visible_pct is None else f", which shows changes from {formatting.about(case.visible_pct)} on"
        built = f"{case.touching} touch what {case.case} is built from"
        scanned.append(f"{built}, {len(case.levels)} libraries were timed{seen}")
    commits = formatting.counted(found.commits, "commit")
    return f"Of {commits} after ", old, " up to ", new, f": {'; '.join(scanned)}."


def _remarks(case: ScannedCase) -> Iterable[Line]:
    if case.fault:
        yield Code(case.case), f": {case.fault}"
    if case.no_time:
        left = formatting.counted(case.no_time, "commit")
        yield Code(case.case), f": the budget left no time for {left}; give more with ", Code("--budget"), "."
    for one in (*case.slower, *case.faster):
        if not one.between:
            continue
        others = formatting.counted(len(one.between), "other commit")
        line: Line = (Code(one.commit[:SHORT]), f" or {others} before it changed ", Code(case.case))
        if set(one.between) <= case.not_measured.keys():
            yield *line, ": what lies between cannot be measured."
        else:
            yield *line, ": ", Code(f"kernelgate bisect {one.before[:SHORT]} {one.commit[:SHORT]} --case {case.case}")


def _changes(found: ScanAnswer) -> Table | None:
    rows: list[tuple[Piece | Line, ...]] = []
    for case in found.cases:
        marks = ((Mark.SLOWER, case.slower), (Mark.FASTER, case.faster), (Mark.UNKNOWN, case.unconfirmed))
        for mark, one in ((mark, one) for mark, ones in marks for one in ones):
            change, interval = formatting.signed(one.change_pct, one.interval_pct)
            if one.interval_pct is None:
                change, interval = f"about {change}", f"not confirmed: {one.said}"
            rows.append(((mark, " ", Code(one.commit[:SHORT])), Strong(change), interval, one.subject, Code(case.case)))
    return table(("commit", "#change", "95%", "subject", "case"), rows) if rows else None


def _sections(case: ScannedCase) -> Iterable[Section]:
    if case.levels:
        rows = (
            (Code(one.commit[:SHORT]), formatting.percent(one.above_newest_pct, 2, sign=True), one.subject)
            for one in case.levels[-ROWS:]
        )
        listed = table(("commit", "#time beside the newest", "subject"), rows)
        yield Section(f"{case.case}: {len(case.levels)} measured", (listed,), worth=1)
    if case.not_measured:
        lines = tuple(f"{sha[:SHORT]}: {why}" for sha, why in case.not_measured.items())
        yield Section(f"{case.case}: {len(lines)} not measured", (Verbatim(lines, ""),), worth=2)
