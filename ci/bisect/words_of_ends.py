"""What a search by halves has found, in words and as JSON: the first commit that fails, or that does not compile."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from kernelgate.ci.bisect.first_failing import FailingStanding
from kernelgate.ci.bisect.words import SHORT, inside_to_json, inside_to_text
from kernelgate.ci.document import formatting


@dataclass(frozen=True)
class FailingResult:
    """A search for the first commit at which a trial fails, which has ended."""

    shas: tuple[str, ...]
    subjects: Sequence[str]
    """Of the culprits."""
    standing: FailingStanding
    case: str
    seed: int
    repeat: str
    """The command that runs the trial again."""
    submodule: str = ""
    inside: FailingResult | str | None = None
    """Of the submodule that the culprit moves; else why it was not searched."""

    @property
    def exit_code(self) -> int:
        """0 found, 2 it does not fail at the bad end, 3 it could not be told."""
        return {"found": 0, "none": 2, "open": 3}[self.standing.kind]


def failing_to_text(result: FailingResult) -> str:
    """The answer first; then what it rests on."""
    return "\n".join([*_answer(result), *_basis(result), *inside_to_text(result.inside, failing_to_text)])


def _answer(result: FailingResult) -> list[str]:
    now, shas = result.standing, result.shas
    if now.kind == "none":
        return [f"{result.case} (seed {result.seed}): passes in {now.runs} of {now.runs} runs at {shas[-1][:SHORT]}"]
    if not now.culprits:
        return [f"{result.case} (seed {result.seed}): not found; no commit touches what the kernel is built from"]
    answer = "fails since" if now.kind == "found" else "not found; most likely fails since"
    lines = [f"{result.case} (seed {result.seed}): {answer}, {formatting.chance(now.chance)}"]
    for place, subject in zip(now.culprits, result.subjects, strict=True):
        why = now.stepped_over.get(place)
        lines.append(f"  {shas[place][:SHORT]} {subject}{f' (stepped over: {why})' if why else ''}")
    if len(now.culprits) > 1:
        lines.append("These cannot be told apart: nothing between them can be tried.")
    return [*lines, f"  {now.fault}", f"  repeat: {result.repeat}"]


def _basis(result: FailingResult) -> list[str]:
    now, shas = result.standing, result.shas
    if now.kind == "none":
        return []
    often = f"It fails in {now.failed} of {now.runs} runs at {shas[-1][:SHORT]}"
    lines = [
        f"{often}; a commit was called good after {now.times} that passed. Tried {now.tried} of {len(shas)} commits."
    ]
    stepped_over = sorted(now.stepped_over.items())
    return lines + [f"Stepped over {shas[at][:SHORT]}: {why}" for at, why in stepped_over if at not in now.culprits]


def failing_to_json(result: FailingResult) -> str:
    """One object; commits in full."""
    return json.dumps(_failing(result), indent=2, ensure_ascii=False)


def _failing(result: FailingResult) -> dict[str, object]:
    now, shas = result.standing, result.shas
    return {
        "case": result.case,
        "seed": result.seed,
        "found": now.kind,
        "culprits": [shas[place] for place in now.culprits],
        "chance": now.chance,
        "fault": now.fault,
        "repeat": result.repeat,
        "failed": now.failed,
        "runs": now.runs,
        "passes": now.times,
        "stepped_over": {shas[place]: why for place, why in sorted(now.stepped_over.items())},
        "inside": inside_to_json(result.inside, _failing),
    }


def nothing_to_json(why: str) -> str:
    """Where no trial fails at the bad end."""
    return json.dumps({"found": "none", "culprits": [], "why": why}, indent=2, ensure_ascii=False)


@dataclass(frozen=True)
class BuiltResult:
    """The last commit that compiles, and the next one, which does not."""

    last: str
    broken: str
    subject: str
    why: str
    submodule: str = ""
    inside: BuiltResult | str | None = None


def build_to_text(found: BuiltResult) -> str:
    lines = [f"{found.last[:SHORT]} compiles, {found.broken[:SHORT]} {found.subject} does not:", f"  {found.why}"]
    return "\n".join([*lines, *inside_to_text(found.inside, build_to_text)])


def build_to_json(found: BuiltResult) -> str:
    return json.dumps(_built(found), indent=2, ensure_ascii=False)


def _built(found: BuiltResult) -> dict[str, object]:
    return {
        "last_that_compiles": found.last,
        "culprits": [found.broken],
        "why": found.why,
        "inside": inside_to_json(found.inside, _built),
    }
