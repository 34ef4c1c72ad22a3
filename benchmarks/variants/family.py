"""What is tried: families of variants of one kernel, of which each varies one thing against the same base."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fuzzing.bug import Bug, CodePath, Device, Edit, KernelName, planted
from benchmarks.fuzzing.planting import SOURCES


@dataclass(frozen=True)
class Variant:
    """One change."""

    what: str
    why: str
    action: str
    """Of ci/explain/recommend.py."""
    variable: str
    """What it varies: tile, stages, warps, …"""
    edits: tuple[Edit, ...]
    """On top of the base's."""


@dataclass(frozen=True)
class Family:
    """One session: a kernel in a state, and what is tried on it."""

    name: str
    kernel: KernelName
    path: CodePath
    case: str
    objective: str
    variants: tuple[Variant, ...]
    base_edits: tuple[Edit, ...] = ()
    """What the base differs in from the kernel as it is: an earlier or a simpler state."""

    @property
    def device(self) -> Device:
        return "cpu" if self.path == "cpu" else "cuda"

    @property
    def base(self) -> Bug:
        return self._state("base", self.base_edits)

    def head(self, number: int) -> Bug:
        """With try `number`, from 1."""
        return self._state(f"try-{number}", (*self.base_edits, *self.variants[number - 1].edits))

    def _state(self, name: str, edits: tuple[Edit, ...]) -> Bug:
        return Bug(f"{self.name}-{name}", self.kernel, self.path, "speed", self.objective, edits, "speed alone")


def undone(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """What takes these edits back."""
    return tuple(Edit(edit.file, edit.new, edit.old, edit.times) for edit in reversed(edits))


def sources(state: Bug) -> Mapping[str, str]:
    """The text of each file that the state changes, by its path. Raises ValueError where an edit does not apply."""
    root, _ = SOURCES[state.kernel]
    return {path.relative_to(root).as_posix(): text for path, text in planted(state, root).items()}


def diff(before: Bug, after: Bug) -> str:
    """A unified diff from one state to the other, as git shows it."""
    old, new = sources(before), sources(after)
    root, _ = SOURCES[before.kernel]
    return "".join(_file_diff(path, _text(old, root, path), _text(new, root, path)) for path in sorted({*old, *new}))


def _text(known: Mapping[str, str], root: Path, path: str) -> str:
    return known[path] if path in known else (root / path).read_text(encoding="utf-8")


def _file_diff(path: str, old: str, new: str) -> str:
    before, after = (text.splitlines(keepends=True) for text in (old, new))
    return "".join(difflib.unified_diff(before, after, f"a/{path}", f"b/{path}"))
