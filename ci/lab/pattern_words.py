"""Patterns in words: for a terminal, as JSON, and as the pages of docs/patterns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from kernelgate.ci.lab.apply import Applies
from kernelgate.ci.lab.pattern import Pattern, Saved


class PatternJson(BaseModel):
    """One pattern, in `kernelgate patterns --json`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    title: str
    applies: bool
    why: tuple[str, ...]
    """What was seen."""
    when: str
    do: str
    command: str
    page: str
    """Relative to the checkout."""
    recorded_minutes: tuple[float, float] | None
    measured_minutes: float | None


class PatternsJson(BaseModel):
    """What `kernelgate patterns --json` prints."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal["kernelgate.patterns/1"] = "kernelgate.patterns/1"
    looked_at: tuple[str, ...]
    patterns: tuple[PatternJson, ...]


def to_json(found: Iterable[Applies], looked_at: Sequence[str]) -> str:
    rows = tuple(_json(one) for one in found)
    return PatternsJson(looked_at=tuple(looked_at), patterns=rows).model_dump_json(indent=2)


def to_text(found: Sequence[Applies], looked_at: Sequence[str]) -> str:
    """Each with why it applies and what to run; of all patterns also when they apply."""
    if not looked_at and not any(found):
        return (
            "Nothing was looked at: no session is open. Give --session, --record or --doctor; --all lists all patterns."
        )
    if not found:
        return f"No pattern applies, by {' and '.join(looked_at)}."
    return "\n\n".join(_lines(one) for one in found)


def saved(recorded: Saved | None) -> str:
    """Such as "60 min", "2 to 4 h", "$0.50"; "not said" where no document gives a figure."""
    if recorded is None or (recorded.minutes is None and recorded.usd is None):
        return "not said"
    if recorded.usd is not None:
        return f"${recorded.usd:.2f}"
    low, high = recorded.minutes or (0.0, 0.0)
    hours = low >= 120 and low % 60 == 0 and high % 60 == 0
    unit = 60 if hours else 1
    span = f"{low / unit:g}" if low == high else f"{low / unit:g} to {high / unit:g}"
    return f"{span} {'h' if hours else 'min'}"


def page(pattern: Pattern) -> str:
    """What the site shows above a pattern's text: its front matter, for readers."""
    measured = "no session that kernelgate measured says so far"
    if pattern.measured_minutes is not None:
        measured = f"{pattern.measured_minutes:g} min"
    said = saved(pattern.recorded) + (f" ({pattern.recorded.source})" if pattern.recorded else "")
    used = "; ".join(
        f"{how} in {', '.join(names)}"
        for how, names in (
            ("learnt", pattern.sessions.learnt),
            ("applied", pattern.sessions.applied),
            ("violated", pattern.sessions.violated),
        )
        if names
    )
    return "\n".join(
        [
            f"**When**: {pattern.when}",
            "",
            f"**Do**: {pattern.do}",
            "",
            f"    {pattern.command}",
            "",
            f"**Evidence**: {pattern.evidence}",
            "",
            f"**Saves**: as recorded, {said}; as measured since, {measured}.",
            "",
            f"**Seen by**: {', '.join(f'`{one}`' for one in pattern.signals) or 'no program; a person decides'}.",
            "",
            f"**Sessions**: {used or 'none names it'}.",
            "",
        ]
    )


def _json(one: Applies) -> PatternJson:
    return PatternJson(
        name=one.pattern.name,
        title=one.pattern.title,
        applies=bool(one.why),
        why=one.why,
        when=one.pattern.when,
        do=one.pattern.do,
        command=one.pattern.command,
        page=f"docs/patterns/{one.pattern.name}.md",
        recorded_minutes=one.pattern.recorded.minutes if one.pattern.recorded else None,
        measured_minutes=one.pattern.measured_minutes,
    )


def _lines(one: Applies) -> str:
    why = [f"  now:  {said}" for said in one.why] or [f"  when: {one.pattern.when}"]
    return "\n".join(
        [
            f"{one.pattern.name}: {one.pattern.title}",
            *why,
            f"  do:   {one.pattern.do}",
            f"  run:  {one.pattern.command}",
        ]
    )
