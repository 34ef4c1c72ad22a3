"""The numbers that decide and that no policy sets: constants of the modules that use them, read from their source.

Such a constant is annotated with `Final` and has its reason behind it, as a docstring; one without shares the reason of
the constant above it. A key of an older policy finds its constant by its name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

ROOT = Path(__file__).parents[2]
DECIDING = (
    *(f"ci/{package}" for package in ("policy", "judge", "history", "bisect", "explain", "lab", "github")),
    "bench/explain",
)
"""The packages whose numbers decide something."""


class DecidingNumber(BaseModel, frozen=True):
    """A constant, or a key of the policy."""

    name: str
    value: Any
    source: str
    """A constant's module, such as "ci/judge/prior.py"; of a key "default", its file, or "preset strict"."""
    reason: str


@cache
def every() -> tuple[DecidingNumber, ...]:
    paths = [path for package in DECIDING for path in sorted((ROOT / package).rglob("*.py"))]
    return tuple(one for path in paths for one in _of_module(path))


def of_key(key: str) -> tuple[DecidingNumber, ...]:
    """What `section.key` of a policy became: constants of that name, or of that name behind its section's."""
    section, _, name = key.rpartition(".")
    names = {name.upper(), f"{section}_{name}".upper()}
    return tuple(one for one in every() if one.name in names)


def _of_module(path: Path) -> Iterator[DecidingNumber]:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    reason = ""
    for node, after in zip(body, [*body[1:], None], strict=True):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="Final"), value=ast.expr() as value):
                if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                    reason = " ".join(str(after.value.value).split())
                with suppress(ValueError):  # no literal
                    found = ast.literal_eval(value)
                    if name.isupper() and isinstance(found, int | float | tuple) and not isinstance(found, bool):
                        module = path.relative_to(ROOT).as_posix()
                        yield DecidingNumber(name=name, value=found, source=module, reason=reason)
