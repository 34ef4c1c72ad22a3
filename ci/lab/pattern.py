"""What a pattern's file says, and how it is read: `docs/patterns/<name>.md`, with YAML front matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from kernelgate.bench.core.errors import KernelgateError, faults

FOLDER = Path("docs/patterns")
"""In a checkout."""
INDEX = "index.md"
SHIPPED = Path(__file__).parent / "pages"
"""Kernelgate's own: in a checkout a link to docs/patterns."""


class PatternError(KernelgateError):
    """A pattern's file cannot be read, or lacks something."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Numbers(_Part):
    """What the founding documents call it: they number their patterns twice, and a third time otherwise."""

    loop: int | None = None
    """Of the twelve of 003.md:1014-1027."""
    expert: int | None = None
    """Of the seven of 003.md:428-481."""
    readme: int | None = None
    """Where 000.md and 001.md give another number than 003.md, that."""


class Saved(_Part):
    """What it is said to have saved, each time that it applied."""

    minutes: tuple[float, float] | None = None
    """From, to."""
    usd: float | None = None
    source: str
    """The document and its line."""


class UsedBy(_Part):
    """Names of sessions."""

    learnt: tuple[str, ...] = ()
    applied: tuple[str, ...] = ()
    violated: tuple[str, ...] = ()


class Pattern(_Part):
    name: str
    """Stable: the file's."""
    title: str
    when: str
    signals: tuple[str, ...] = ()
    """Checks of ci/lab/signals.py; none where no program can see when it applies."""
    do: str
    command: str
    """What to run."""
    evidence: str
    recorded: Saved | None = None
    """None where no document gives a figure."""
    measured_minutes: float | None = None
    """Saved since, by sessions that kernelgate measured; None until one did."""
    sessions: UsedBy = UsedBy()
    numbers: Numbers = Numbers()
    cookbook: str
    """The heading of docs/CUDA_COOKBOOK.md, as its anchor."""

    @model_validator(mode="after")
    def _minutes_in_order(self) -> Self:
        if self.recorded and self.recorded.minutes and self.recorded.minutes[0] > self.recorded.minutes[1]:
            raise ValueError("recorded.minutes: from must not be above to")
        return self


def folder(checkout: Path) -> Path:
    """The checkout's own patterns, where it has any; else kernelgate's."""
    own = checkout / FOLDER
    return own if own.is_dir() else SHIPPED


def read_all(at: Path) -> tuple[Pattern, ...]:
    """All patterns of a folder, by name. Raises PatternError, which names file and field."""
    return tuple(read(path) for path in sorted(at.glob("*.md")) if path.name != INDEX)


def read(path: Path) -> Pattern:
    """Raises PatternError."""
    import yaml  # the jobs that hold the write token do without it

    try:
        content = front_matter(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PatternError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except yaml.YAMLError as error:
        raise PatternError(f"{path}: its front matter is no YAML: {str(error).splitlines()[0]}") from None
    if content is None:
        raise PatternError(f"{path}: a pattern begins with front matter between two lines of ---")
    try:
        pattern = Pattern.model_validate(content)
    except ValidationError as error:
        raise PatternError(f"{path}: {faults(error)}") from None
    if pattern.name != path.stem:
        raise PatternError(f"{path}: its name is {pattern.name!r}, and its file must be called {pattern.name}.md")
    return pattern


def front_matter(text: str) -> Any:
    """What stands between the first two lines of `---`; None where a text has none. Raises yaml.YAMLError."""
    import yaml

    if not text.startswith("---\n"):
        return None
    head, end, _ = text[4:].partition("\n---\n")
    return yaml.safe_load(head) if end else None
