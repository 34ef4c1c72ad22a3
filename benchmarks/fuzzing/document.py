"""What came of all bugs, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.fuzzing import library, results, survivors
from benchmarks.fuzzing.bug import Bug
from benchmarks.fuzzing.detectors import DETECTORS
from benchmarks.fuzzing.results import BugResult, BugResults, LatentResult

BEGIN, END = "<!-- benchmark-fuzz: begin -->", "<!-- benchmark-fuzz: end -->"
SHORT = {"cpu": "CPU", "cuda": "GPU"}


@dataclass(frozen=True)
class Row:
    bug: Bug
    result: BugResult


def insert(document: str, text: str) -> str:
    """The document with `text` between its marks."""
    before, rest = document.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def tables(measured: Sequence[BugResults]) -> str:
    """Shares by kernel, survivors, equivalent changes, and every bug; of results whose bug is still in the library."""
    found = list(rows(measured))
    bugs = [row for row in found if row.bug.changes_results]
    unseen = [row for row in found if row.bug.latent]
    equivalent = [row for row in found if row.bug.equivalent and row.bug.edits]
    parts = (
        "Measured on: " + "; ".join(dict.fromkeys(one.machine for one in measured)) + ".",
        _shares(bugs),
        "**Survivors**, and those of which nothing is known:",
        _survivors([row for row in bugs if row.result.caught_by is None]) or "None.",
        "**Kernels as they are**, which must pass:",
        _table(["kernel", "on", "outcome", "s"], [_unmodified(row) for row in found if not row.bug.edits]),
        "**Changes of which no result differs**, and what was said of them:",
        _table(["change", "on", "why no result differs", "outcome"], [_equivalent(row) for row in equivalent]),
        "**Latent bugs**: wrong by the machine's rules, while no call was seen of which a bit differs, under any load:",
        _table(["bug", "what it does", "why no result differs", "calls that differ", "outcome"], _latent(unseen)),
        "**All bugs:**",
        _table(["bug", "on", "kind", "what it does", "caught by", "s"], [_bug(row) for row in bugs]),
    )
    return "\n\n".join(parts)


def rows(measured: Sequence[BugResults]) -> Iterator[Row]:
    """In the library's order; where several files have a result, the last one's."""
    for bug in (*library.CONTROLS, *library.BUGS):
        for device in bug.devices:
            results = [one for file in measured if (one := file.of(bug.id, device))]
            if results:
                yield Row(bug, results[-1])


def _shares(found: Sequence[Row]) -> str:
    body = []
    for kernel in library.KERNELS:
        for device, short in SHORT.items():
            mine = [row.result for row in found if (row.bug.kernel, row.result.device) == (kernel, device)]
            if mine:
                body.append([kernel, short, *_counts(mine)])
    body.append(["**all**", "", *_counts([row.result for row in found])])
    return _table(["kernel", "on", "bugs", *DETECTORS, "undecided", "survive", "caught"], body)


def _counts(mine: Sequence[BugResult]) -> list[str]:
    """The bugs, those that each detector was the first to catch, and the rest."""
    by = [sum(one.caught_by == name for one in mine) for name in DETECTORS]
    undecided = sum(one.undecided for one in mine)
    numbers = (len(mine), *by, undecided, len(mine) - sum(by) - undecided)
    return [*map(str, numbers), f"{100 * sum(by) / max(1, len(mine)):.0f}%"]


def _survivors(found: Sequence[Row]) -> str:
    body = [[f"`{row.bug.id}`", SHORT[row.result.device], row.bug.what, _why(row)] for row in found]
    return _table(["bug", "on", "what it does", "why it survives"], body) if body else ""


def _why(row: Row) -> str:
    if row.result.undecided:
        return f"undecided: {outcome(row.result)}"
    return survivors.SURVIVORS.get((row.bug.id, row.result.device), "not looked into yet")


def _unmodified(row: Row) -> list[str]:
    return [f"{row.bug.kernel}, {row.bug.path}", SHORT[row.result.device], outcome(row.result), _seconds(row)]


def _equivalent(row: Row) -> list[str]:
    return [f"`{row.bug.id}`: {row.bug.what}", SHORT[row.result.device], row.bug.equivalent, outcome(row.result)]


def _latent(found: Sequence[Row]) -> list[list[str]]:
    seen = results.read_latent()
    return [
        [f"`{row.bug.id}`", row.bug.what, row.bug.latent, _differing(seen.get(row.bug.id)), outcome(row.result)]
        for row in found
    ]


def _differing(seen: LatentResult | None) -> str:
    return f"{seen.differing} of {seen.calls:,}" if seen else "not measured"


def _bug(row: Row) -> list[str]:
    caught = row.result.caught_by or ("undecided" if row.result.undecided else "–")
    return [f"`{row.bug.id}`", SHORT[row.result.device], row.bug.kind, row.bug.what, caught, _seconds(row)]


def outcome(result: BugResult) -> str:
    """Such as "passes fuzz, memcheck"."""
    if not result.built:
        return "does not compile"
    if result.caught_by:
        return f"caught by {result.caught_by}"
    unclear = [f"{look.detector} {look.message}" for look in result.looks if look.caught is None]
    return "; ".join(unclear) or f"passes {', '.join(look.detector for look in result.looks)}"


def _seconds(row: Row) -> str:
    return f"{row.result.seconds:.1f}"


def _table(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
