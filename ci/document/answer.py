"""What a verb prints with --json: one object, written from its model, so that the published schema holds for it."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from pydantic import TypeAdapter


def shown(answer: Any) -> str:
    """A model, or a dataclass that stands for one, as JSON."""
    data = TypeAdapter(type(answer)).dump_python(answer, mode="json", by_alias=True)
    text = json.dumps(_without_infinities(data), indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode(errors="backslashreplace").decode()  # bytes of a file's name that are no UTF-8, as JSON has them


def _without_infinities(data: Any) -> Any:
    """JSON has no number for them, nor for NaN."""
    if isinstance(data, dict):
        return {key: _without_infinities(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_without_infinities(value) for value in data]
    return None if isinstance(data, float) and not isfinite(data) else data
