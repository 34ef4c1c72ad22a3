"""Remarks beside the changed lines of a kernel: for the check run, from what assemble.py decided."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from kernelgate.ci.document import escape, formatting, render
from kernelgate.ci.github.assemble import Posting
from kernelgate.ci.github.post_check_run import Annotation, Level
from kernelgate.ci.judge import correctness
from kernelgate.ci.judge.case import Outcome, severity
from kernelgate.ci.judge.gate import BlockCode, Fault
from kernelgate.ci.report import correctness as words
from kernelgate.ci.report import remarks
from kernelgate.ci.report.gpu import GpuReport

MAX_ANNOTATIONS = 100
MAX_FINDINGS = 20
"""Of compute-sanitizer, on one GPU."""
MAX_WARNINGS = 20
"""Of compilers."""
MAX_LINE = 10**7

_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_SOURCE = re.compile(r"[\w.+ -][\w./+ -]{0,250}", re.ASCII)
_COMPILER = re.compile(r"(?P<path>[\w./-]+\.(?:cuh?|cpp|h|hpp|py))[:(](?P<line>\d{1,7})")


def line_notes(
    posting: Posting, files: Sequence[tuple[str, str]], kernel_paths: Sequence[str]
) -> tuple[Annotation, ...]:
    """Remarks beside the changed kernel lines. `files`: path and patch of each changed file.

    One where something regressed, is wrong or is faster: which lines did it is not known, so it stands at the longest
    run of changed ones. A compiler's error and what compute-sanitizer found stand at their own lines.
    """
    changed = [(path, patch) for path, patch in files if path.startswith(tuple(kernel_paths))]
    found = [note for one in posting.gpus for note in _of_compiler(one, [path for path, _ in changed], posting.title)]
    found += dict.fromkeys(note for one in posting.gpus for note in _of_sanitizer(one, posting, tuple(kernel_paths)))
    found += _of_warnings(posting.gpus, {path for path, _ in files})
    remark = _remark(posting)
    if remark is not None:
        level, message = remark
        runs = [(path, *run) for path, patch in changed for run in changed_lines(patch)]
        for path, start, end in sorted(runs, key=lambda run: run[1] - run[2])[:1]:
            found.append(Annotation(path, start, end, level, posting.title, message))
    return tuple(found[:MAX_ANNOTATIONS])


def changed_lines(patch: str) -> list[tuple[int, int]]:
    """First and last line, in the new file, of each run of added lines; where lines were only removed, the next one."""
    runs: list[tuple[int, int]] = []
    line, start, removed = 0, None, False
    for text in [*patch.split("\n"), "@@ -0 +0 @@"]:
        if text.startswith("+"):
            start = line if start is None else start
            line += 1
            continue
        if start is not None:
            runs.append((start, line - 1))
            start, removed = None, False
        if text.startswith("-"):
            removed = True
        elif not text.startswith("\\"):
            hunk = _HUNK.match(text)
            # At the end of a hunk the line that follows may not exist.
            at = line - 1 if hunk else line
            if removed and at > 0:
                runs.append((at, at))
            removed = False
            line = int(hunk[1]) if hunk else line + 1
    return runs


_NEWS = (Outcome.REGRESSED, Outcome.IMPROVED)
"""What a gate acts on."""


def _remark(posting: Posting) -> tuple[Level, str] | None:
    blocking = {blocker.code for blocker in posting.decision.blockers}
    if any(one.is_wrong for one in posting.gpus):
        message = "The kernel's output differs from the oracle's. The comment names the first case."
        return ("failure" if BlockCode.WRONG_OUTPUT in blocking else "notice"), message
    several = len(posting.gpus) > 1
    every = [(one.label, case) for one in posting.gpus for case in one.cases if case.case.verdict in _NEWS]
    every.sort(key=lambda found: severity(found[1].case))
    news = [
        f"{f'{label}: ' if several else ''}{render.plain_line((case.name,))}: {formatting.sentence(case.case.sentence)}"
        for label, case in every
    ]
    news += [
        f"{f'{one.label}: ' if several else ''}{f'{mean.card}: ' if mean.card else ''}{mean.sentence}"
        for one in posting.gpus
        if one.verdict
        for mean in one.verdict.means
        if mean.verdict in _NEWS
    ]
    if not news:
        return None
    more = f" And {len(news) - 5} more." if len(news) > 5 else ""
    return ("failure" if BlockCode.SLOWER in blocking else "notice"), "; ".join(news[:5]) + "." + more


def _of_compiler(one: GpuReport, paths: Sequence[str], title: str) -> list[Annotation]:
    """The compiler's first error, where it names a changed file."""
    if one.failure is None or one.failure.fault is not Fault.BUILD:
        return []
    found = _COMPILER.search(one.failure.message)
    path = next((path for path in paths if found and path.endswith(found["path"].lstrip("./"))), None)
    if found is None or path is None:
        return []
    line = int(found["line"])
    return [Annotation(path, line, line, "failure", title, one.failure.message)]


def _of_warnings(gpus: Sequence[GpuReport], paths: Collection[str]) -> Iterator[Annotation]:
    """What the compilers warn of in changed files, at its line."""
    for found in remarks.compiler_warnings(gpus)[:MAX_WARNINGS]:
        line = found.line or 0
        if found.file in paths and 0 < line < MAX_LINE:
            yield Annotation(found.file, line, line, "warning", "compiler warning", escape.visible(found.text))


def _of_sanitizer(one: GpuReport, posting: Posting, kernel_paths: tuple[str, ...]) -> Iterator[Annotation]:
    """What compute-sanitizer found, where it names a line of a kernel's source: a record may name any file."""
    blocks = any(
        blocker.code is BlockCode.SANITIZER and blocker.gpu == one.label for blocker in posting.decision.blockers
    )
    checks = correctness.checks(one.record, "sanitizer") if one.record is not None else ()
    for found in [found for check in checks for found in correctness.sanitizer_findings(check)][:MAX_FINDINGS]:
        path, line = found.file or "", found.line or 0
        inside = _SOURCE.fullmatch(path) and ".." not in path.split("/") and path.startswith(kernel_paths)
        if inside and 0 < line < MAX_LINE:
            level: Level = "failure" if blocks and not found.on_base else "warning"
            yield Annotation(path, line, line, level, "compute-sanitizer", render.plain_line(words.finding(found)))
