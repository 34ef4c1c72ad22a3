"""The list of all that verbs print with --json, and its schemas: `docs/schemas/<verb>.schema.json`.

No verb loads this: a fuzz run needs neither sessions nor the history, and they load scipy.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from kernelgate.bench.record import RunRecord
from kernelgate.ci.commands import answers
from kernelgate.ci.github.actions import StepAnswer
from kernelgate.ci.history import answer as history
from kernelgate.ci.judge.answer import CompareAnswer
from kernelgate.ci.lab import session_answer as sessions
from kernelgate.ci.lab.advice_answer import OutcomesAnswer, Recommended
from kernelgate.ci.lab.log import TriedChange
from kernelgate.ci.lab.metrics import SessionsBeside
from kernelgate.ci.lab.pattern_words import PatternsJson
from kernelgate.ci.lab.state import SessionState

ANSWERS: Final[dict[str, Any]] = {
    "accuracy": RunRecord,
    "analyze": answers.AnalyzeAnswer,
    "bench": answers.BenchAnswer,
    "bisect": answers.BisectAnswer,
    "build": answers.BuildAnswer,
    "cache": answers.CacheAnswer,
    "cards": answers.ListedCards,
    "compare": CompareAnswer,
    "decide": answers.DecideAnswer,
    "doctor": answers.DoctorAnswer,
    "fuzz": answers.FuzzAnswer,
    "fuzz-hours": answers.SoakAnswer,
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
    "pr": answers.PrAnswer,
    "profile": answers.ProfileAnswer,
    "prompt": answers.PromptAnswer,
    "recommend": Recommended,
    "report": answers.ReportAnswer,
    "resources": answers.ResourcesAnswer,
    "resources-tile": answers.TileAnswer,
    "sanitize": answers.SanitizeAnswer,
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
    "template": answers.TemplateAnswer,
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
    """All of them: `python -m kernelgate.ci.commands.schemas` writes docs/schemas."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ANSWERS:
        (folder / f"{name}.schema.json").write_text(schema(name), encoding="utf-8")


if __name__ == "__main__":
    write_schemas(Path("docs/schemas"))
