"""What verbs print with --json, one object each, and the schemas of it: `docs/schemas/<verb>.schema.json`.

What sessions, the history, advice and the steps of workflows answer stands beside them; the list of all is here. Fields
are added, never renamed or removed; a program ignores those that it does not know. What the verb says to people goes to
stderr, and its exit code is the same with --json and without. One that could not run prints none: stderr says why.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, TypeAdapter

from kernelgate.bench.record import Check, KernelFacts, Profile, RunRecord, Side
from kernelgate.ci.advice.answer import OutcomesAnswer, Recommended
from kernelgate.ci.document.answer import VerbAnswer
from kernelgate.ci.github.actions import StepAnswer
from kernelgate.ci.history import answer as history
from kernelgate.ci.judge.case import ProcessChange, Speeds
from kernelgate.ci.judge.validity import Finding
from kernelgate.ci.patterns.words import PatternsJson
from kernelgate.ci.sessions import answer as sessions
from kernelgate.ci.sessions.log import TriedChange
from kernelgate.ci.sessions.metrics import SessionsBeside
from kernelgate.ci.sessions.state import SessionState


class BuiltLibrary(VerbAnswer):
    card: str
    sha: str | None
    """The commit; None for the working tree."""
    targets: tuple[str, ...]
    path: str
    cached: bool
    """Whether nothing had to be compiled."""
    seconds: float
    """That compiling took, once."""


class BuildAnswer(VerbAnswer):
    libraries: tuple[BuiltLibrary, ...]
    left_out: dict[str, str]
    """Cards without a library, and why."""


class FuzzAnswer(VerbAnswer):
    checks: tuple[Check, ...]
    """One for each card."""


class SoakedCard(VerbAnswer):
    card: str
    tried: int
    failed: int
    repeat: dict[str, str]
    """Of each different failure, the command that repeats it."""
    said: str


class SoakAnswer(VerbAnswer):
    soaked: tuple[SoakedCard, ...]


class BenchAnswer(VerbAnswer):
    record: str
    """The file."""
    cases: int
    processes: int
    gpu_seconds: float
    next: str
    """The command that judges it."""


class ProfileAnswer(VerbAnswer):
    profiles: tuple[Profile, ...]
    reports: tuple[str, ...]
    """Files for `kernelgate analyze`."""
    failures: tuple[str, ...]


class SanitizeAnswer(VerbAnswer):
    checks: tuple[Check, ...]


class DoctorCheck(VerbAnswer):
    name: str
    level: Literal["passed", "warning", "failed"]
    found: str
    fix: str | None


class DoctorAnswer(VerbAnswer):
    fit: bool
    checks: tuple[DoctorCheck, ...]


class DecideAnswer(VerbAnswer):
    priority: str
    sentence: str
    command: str
    stops: bool
    """Profile before anything else; exit code 1."""
    keep: str | None
    """With --before-ms: whether the fix is worth keeping."""


class PrAnswer(VerbAnswer):
    blocks: bool
    conclusion: str
    """Of the check run that a pull request would get."""
    why: str
    files: tuple[str, ...]


class PrunedLibrary(VerbAnswer):
    name: str
    bytes: int


class CacheAnswer(VerbAnswer):
    folder: str
    removed: tuple[PrunedLibrary, ...]
    in_use: tuple[PrunedLibrary, ...]
    kept: int
    kept_bytes: int


class ReportAnswer(VerbAnswer):
    markdown: str
    """The comment."""
    files: tuple[str, ...]
    """That were written."""


class TemplateAnswer(VerbAnswer):
    blocks: bool
    text: str


class PromptAnswer(VerbAnswer):
    session: str
    text: str
    """Markdown."""


class ResourcesOfKernel(KernelFacts):
    card: str
    side: Side


class StaticRemark(VerbAnswer):
    code: str
    severity: str
    kernel: str
    target: str
    message: str
    card: str


class ResourcesAnswer(VerbAnswer):
    resources: tuple[ResourcesOfKernel, ...]
    findings: tuple[StaticRemark, ...]


class TileAnswer(VerbAnswer):
    """Of `resources --tile`: whether a block fits on a multiprocessor, and how many of them."""

    gpu: str
    fits: bool
    shared_bytes: int
    """Of a block."""
    threads: int
    registers: int | None
    """Of a thread, about; null where bytes were given and no tile."""
    least_registers: int | None
    """For the thread's share of the tile alone."""
    blocks: int | None
    warps: int | None
    occupancy_pct: float | None
    limits: tuple[str, ...]
    """What keeps more blocks away."""
    said: str


class JudgedRow(VerbAnswer):
    """A case, or the mean of a card's; percentages are changes of time, positive is slower."""

    card: str
    verdict: Literal["improved", "regressed", "slower", "faster", "equivalent", "inconclusive"]
    direction: str
    sentence: str
    change_pct: float | None
    interval_pct: tuple[float, float] | None
    p: float | None


class JudgedCaseRow(JudgedRow):
    id: str
    base_us: float | None
    head_us: float | None
    reference_us: float | None
    processes: int
    rounds: int
    findings: tuple[Finding, ...]
    cliffs_delta: float | None
    minimum_detectable_pct: float | None
    mann_whitney_p: float | None
    bootstrap_pct: tuple[float, float] | None
    per_process: tuple[ProcessChange, ...]
    speeds: tuple[Speeds, ...]


class JudgedMeanRow(JudgedRow):
    cases: int
    of: int
    """How many cases of the card were compared."""
    processes: int


class CompareAnswer(VerbAnswer):
    """One a line, for each record."""

    record: str
    verdict: Literal["improved", "regressed", "slower", "faster", "equivalent", "inconclusive"]
    reason: str
    cases: tuple[JudgedCaseRow, ...]
    means: tuple[JudgedMeanRow, ...]
    refused: str | None
    against: str


class AdviceRow(VerbAnswer):
    name: str
    """Of the action, in `ci/explain/actions.py`; stable."""
    action: str
    reason: str
    expected_gain_pct: float | None
    source: str
    link: str


class AnalysedKernel(VerbAnswer):
    kernel: str
    duration_us: float | None
    bottleneck: str
    confidence: float
    metrics: dict[str, float]
    roofline: dict[str, float | str | None]
    recommendations: tuple[AdviceRow, ...]


class AnalyzeAnswer(VerbAnswer):
    kernels: tuple[AnalysedKernel, ...]
    against: tuple[AnalysedKernel, ...] = ()
    changes: tuple[dict[str, Any], ...] = ()
    budgets: tuple[dict[str, Any], ...] = ()


class CardMistakeRow(VerbAnswer):
    file: str
    line: int | None
    member: str
    text: str


class CheckedCard(VerbAnswer):
    card: str
    mistakes: tuple[str, ...]
    right: str | None
    """What was tried and found right."""


class ListedCards(VerbAnswer):
    cards: tuple[dict[str, Any], ...]
    mistakes: tuple[CardMistakeRow, ...]
    """In cards that cannot be read."""
    checked: tuple[CheckedCard, ...]
    """Empty with --list."""


class BisectAnswer(VerbAnswer):
    """Of `bisect`: docs/bisect.md says which fields --fuzz and --build have."""

    culprits: tuple[str, ...]
    case: str | None = None
    found: str | None = None
    chance: float | None = None
    change_pct: float | None = None
    interval_pct: tuple[float, float] | None = None
    several: tuple[dict[str, Any], ...] = ()
    stepped_over: dict[str, str] = Field(default_factory=dict)
    processes: int | None = None
    seed: int | None = None
    fault: str | None = None
    repeat: str | None = None
    failed: int | None = None
    runs: int | None = None
    passes: int | None = None
    last_that_compiles: str | None = None
    why: str | None = None
    inside: dict[str, Any] | None = None
    """The same of the submodule that the culprit moves, with its path `submodule`; or `why` it was not searched."""


ANSWERS: Final[dict[str, Any]] = {
    "accuracy": RunRecord,
    "analyze": AnalyzeAnswer,
    "bench": BenchAnswer,
    "bisect": BisectAnswer,
    "build": BuildAnswer,
    "cache": CacheAnswer,
    "cards": ListedCards,
    "compare": CompareAnswer,
    "decide": DecideAnswer,
    "doctor": DoctorAnswer,
    "fuzz": FuzzAnswer,
    "fuzz-hours": SoakAnswer,
    "history-add": history.AddedRecords,
    "history-changes": history.ShownChanges,
    "history-condense": history.CondensedRecords,
    "history-culprits": history.ShownCulprits,
    "history-export": history.ExportedHistory | history.ExportedFiles,
    "history-import": history.ImportedTimes,
    "history-rebuild": history.RebuiltIndex,
    "history-show": history.ShownHistory,
    "history-site": history.WrittenSite,
    "history-tonight": history.ShownTonight,
    "outcomes": OutcomesAnswer,
    "patterns": PatternsJson,
    "pr": PrAnswer,
    "profile": ProfileAnswer,
    "prompt": PromptAnswer,
    "recommend": Recommended,
    "report": ReportAnswer,
    "resources": ResourcesAnswer,
    "resources-tile": TileAnswer,
    "sanitize": SanitizeAnswer,
    "session-close": sessions.ClosedSession,
    "session-cost": sessions.LoggedCost,
    "session-gate": sessions.GatesTried,
    "session-keep": sessions.DecidedTry,
    "session-metrics": SessionsBeside,
    "session-new": sessions.BegunSession,
    "session-next": sessions.WhatIsNext,
    "session-note": sessions.LoggedNote,
    "session-page": sessions.SessionPage,
    "session-revert": sessions.DecidedTry,
    "session-status": SessionState,
    "session-submit": sessions.SubmittedSession,
    "session-try": TriedChange | sessions.WhatIsNext,
    "step": StepAnswer,
    "template": TemplateAnswer,
}
"""Models, and dataclasses that stand for one, by the words of their verb.

`fuzz --hours` and `resources --tile` have answers of their own; `session try` answers what comes next where nothing may
be measured any more, `history export` the names of Parquet files or the rows.
"""
NAMED_OTHERWISE: Final[dict[str, str]] = {
    "cache prune": "cache",
    **dict.fromkeys(
        ("accept", "admit", "baseline", "bisected", "command", "culprits", "ends", "fetch", "index", "plan", "reuse"),
        "step",
    ),
    "history next": "step",
    "session review": "step",
}
WITHOUT: Final[dict[str, str]] = {"mcp": "it serves: its standard output speaks the Model Context Protocol"}
"""Verbs that have no --json, and why."""


def key(verb: str) -> str:
    """Under which a verb's answer stands in `ANSWERS`, such as "session-next" for "session next"."""
    return NAMED_OTHERWISE.get(verb, verb.replace(" ", "-"))


def schema(name: str) -> str:
    """The JSON Schema of an answer, as its file holds it."""
    made = TypeAdapter(ANSWERS[name]).json_schema(mode="serialization", by_alias=True)
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **made}, indent=2) + "\n"


def write_schemas(folder: Path) -> None:
    """All of them: `python -m kernelgate.ci.answers` writes docs/schemas."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ANSWERS:
        (folder / f"{name}.schema.json").write_text(schema(name), encoding="utf-8")


if __name__ == "__main__":
    write_schemas(Path("docs/schemas"))
