"""Patterns, the sections of docs/patterns.md: what each says, which apply now, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system.progress import say
from kernelgate.ci.lab.signals import SIGNALS, Seen

FILE = Path(".ci/patterns.md")
SHIPPED = Path(__file__).parent / "patterns.md"
"""Kernelgate's own: in a checkout a link to docs/patterns.md."""
SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n?)*)", re.MULTILINE)
LINE = re.compile(r"^- (\w+): (.+)$", re.MULTILINE)
REQUIRED = ("When", "Do", "Run", "Check", "Evidence")
OPTIONAL = ("Saves",)


@dataclass(frozen=True)
class Pattern:
    name: str
    """The heading."""
    when: str
    do: str
    command: str
    signals: tuple[str, ...]
    """Checks of ci/lab/signals.py."""
    evidence: str
    saves: str | None
    """What documents say that it saves; nobody measured it."""


def file_of(checkout: Path) -> Path:
    """The checkout's own patterns, where it has any; else kernelgate's."""
    own = checkout / FILE
    return own if own.is_file() else SHIPPED


def read_all(path: Path) -> tuple[Pattern, ...]:
    """All patterns of a file, in its order; a section that is none is said and left out. Raises KernelgateError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KernelgateError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    found: list[Pattern] = []
    for name, lines in SECTION.findall(text):
        try:
            found.append(_pattern(path, name.strip(), lines))
        except KernelgateError as error:
            say(f"left out: {error}")
    if not found:
        raise KernelgateError(f"{path} has no pattern: each is a section, which begins with a line `## NAME`")
    return tuple(found)


def _pattern(path: Path, name: str, section: str) -> Pattern:
    said = dict(LINE.findall(section))
    if lacks := [one for one in REQUIRED if one not in said]:
        raise KernelgateError(f"{path}: pattern {name} has no line `- {lacks[0]}: …`")
    if strange := [one for one in said if one not in (*REQUIRED, *OPTIONAL)]:
        known = ", ".join((*REQUIRED, *OPTIONAL))
        raise KernelgateError(f"{path}: pattern {name} has a line `- {strange[0]}: …`; known are {known}")
    signals = tuple(re.findall(r"`(\w+)`", said["Check"]))
    if unknown := next((one for one in signals if one not in SIGNALS), None):
        known = ", ".join(SIGNALS)
        raise KernelgateError(f"{path}: pattern {name}: no signal is called {unknown!r}; there are {known}")
    command = said["Run"].strip("`")
    return Pattern(name, said["When"], said["Do"], command, signals, said["Evidence"], said.get("Saves"))


# ---- which apply now -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Applies:
    """A pattern, and what was seen, with its figure: nothing where it does not apply."""

    pattern: Pattern
    why: tuple[str, ...]


@dataclass(frozen=True)
class PatternsNow:
    """What `kernelgate patterns` answers."""

    looked_at: tuple[str, ...]
    patterns: tuple[Applies, ...]


def applying(patterns: Iterable[Pattern], seen: Seen, every: bool = False) -> tuple[Applies, ...]:
    """Those with a signal that fires, in their order; with `every` all, each with what was seen."""
    found = []
    for pattern in patterns:
        said = (SIGNALS[name](seen) for name in pattern.signals)
        found.append(Applies(pattern, tuple(dict.fromkeys(filter(None, said)))))
    return tuple(one for one in found if one.why or every)


# ---- in words --------------------------------------------------------------------------------------------------------


def to_text(now: PatternsNow) -> str:
    """Each with why it applies and what to run; of all patterns also when they apply."""
    if now.patterns:
        return "\n\n".join(map(_text, now.patterns))
    if now.looked_at:
        return f"No pattern applies, by {' and '.join(now.looked_at)}."
    return "Nothing was looked at: no session is open. Give --session, --record or --doctor; --all lists all patterns."


def _text(one: Applies) -> str:
    why = [f"  now:  {said}" for said in one.why] or [f"  when: {one.pattern.when}"]
    return "\n".join([one.pattern.name, *why, f"  do:   {one.pattern.do}", f"  run:  {one.pattern.command}"])
