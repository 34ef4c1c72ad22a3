"""Patterns, `docs/patterns/<name>.md` with YAML front matter: what each says, which apply now, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from kernelgate.bench.core.errors import KernelgateError, faults
from kernelgate.bench.system.progress import say
from kernelgate.ci.lab.signals import SIGNALS, Seen

FOLDER = Path("docs/patterns")
INDEX = "index.md"
SHIPPED = Path(__file__).parent / "pages"
"""Kernelgate's own: in a checkout a link to docs/patterns."""


class PatternError(KernelgateError):
    """A pattern's file cannot be read, or lacks something."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Numbers(_Part):
    """What the founding documents call it: one of the twelve of 003.md:1014-1027, of the seven of 003.md:428-481, and
    the number in 000.md and 001.md, where that is another."""

    loop: int | None = None
    expert: int | None = None
    readme: int | None = None


class Saved(_Part):
    """What it is said to have saved, from and to, each time that it applied; `source`: document and line."""

    minutes: tuple[float, float] | None = None
    usd: float | None = None
    source: str


class UsedBy(_Part):
    """Names of sessions."""

    learnt: tuple[str, ...] = ()
    applied: tuple[str, ...] = ()
    violated: tuple[str, ...] = ()


class Pattern(_Part):
    name: str
    title: str
    when: str
    signals: tuple[str, ...] = ()
    """Checks of ci/lab/signals.py; none where no program can see when it applies."""
    do: str
    command: str
    evidence: str
    recorded: Saved | None = None
    """None where no document gives a figure."""
    sessions: UsedBy = UsedBy()
    numbers: Numbers = Numbers()
    cookbook: str
    """The heading of docs/CUDA_COOKBOOK.md, as its anchor."""


def folder(checkout: Path) -> Path:
    """The checkout's own patterns, where it has any; else kernelgate's."""
    own = checkout / FOLDER
    return own if own.is_dir() else SHIPPED


def read_all(at: Path) -> tuple[Pattern, ...]:
    """All patterns of a folder, by name. One that cannot be read is said, and left out."""
    found = []
    for path in (one for one in sorted(at.glob("*.md")) if one.name != INDEX):
        try:
            found.append(read(path))
        except PatternError as error:
            say(f"left out: {error}")
    return tuple(found)


def read(path: Path) -> Pattern:
    """From the YAML between the first two lines of `---`. Raises PatternError."""
    import yaml  # the jobs that hold the write token do without it

    try:
        front = re.match(r"---\n(.*?\n)---\n", path.read_text(encoding="utf-8"), re.DOTALL)
        if front is None:
            raise PatternError(f"{path}: a pattern begins with front matter between two lines of ---")
        pattern = Pattern.model_validate(yaml.safe_load(front[1]))
    except (OSError, UnicodeDecodeError) as error:
        raise PatternError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except yaml.YAMLError as error:
        raise PatternError(f"{path}: its front matter is no YAML: {str(error).splitlines()[0]}") from None
    except ValidationError as error:
        raise PatternError(f"{path}: {faults(error)}") from None
    if pattern.name != path.stem:
        raise PatternError(f"{path}: its name is {pattern.name!r}, and its file must be called {pattern.name}.md")
    if strange := next((name for name in pattern.signals if name not in SIGNALS), None):
        raise PatternError(f"{path}: no signal is called {strange!r}; there are {', '.join(SIGNALS)}")
    return pattern


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
    title, to_do = f"{one.pattern.name}: {one.pattern.title}", f"  do:   {one.pattern.do}"
    return "\n".join([title, *why, to_do, f"  run:  {one.pattern.command}"])


def saved(recorded: Saved | None) -> str:
    """Such as "60 min", "2 to 4 h", "$0.50"; "not said" where no document gives a figure."""
    if recorded is not None and recorded.usd is not None:
        return f"${recorded.usd:.2f}"
    if recorded is None or recorded.minutes is None:
        return "not said"
    low, high = recorded.minutes
    unit, name = (60, "h") if low >= 120 and low % 60 == high % 60 == 0 else (1, "min")
    return f"{' to '.join(dict.fromkeys(f'{end / unit:g}' for end in (low, high)))} {name}"


def page(pattern: Pattern) -> str:
    """What the site shows above a pattern's text: its front matter, for readers."""
    said = saved(pattern.recorded) + (f" ({pattern.recorded.source})" if pattern.recorded else "")
    used = "; ".join(f"{how} in {', '.join(names)}" for how, names in pattern.sessions if names)
    seen_by = ", ".join(f"`{one}`" for one in pattern.signals) or "no program; a person decides"
    return f"""**When**: {pattern.when}

**Do**: {pattern.do}

    {pattern.command}

**Evidence**: {pattern.evidence}

**Saves**: as recorded, {said}; measured by no session so far.

**Seen by**: {seen_by}.

**Sessions**: {used or "none names it"}.
"""
