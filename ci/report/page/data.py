"""The figures of every case as JSON inside the page: what its script sorts by, and what people may take away."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from kernelgate.ci.document.render import plain_line
from kernelgate.ci.report.page.rows import CaseRow

_ENDS_SOONER = {"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"}
"""What could end the element; JSON's own escapes mean the same. What is not ASCII is written as such an escape too."""


def embedded(rows: Sequence[CaseRow]) -> Markup:
    """Text for inside `<script type="application/json">`."""
    text = json.dumps({"cases": [_figures(row) for row in rows]}, separators=(",", ":"), allow_nan=False)
    for character, escape in _ENDS_SOONER.items():
        text = text.replace(character, escape)
    return Markup(text)  # noqa: S704 (no character is left that HTML gives a meaning)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _figures(row: CaseRow) -> dict[str, Any]:
    case = row.one.case
    return {
        "gpu": row.gpu,
        "card": case.card,
        "id": case.id,
        "name": plain_line(row.title),
        "status": row.one.status.name.lower(),
        "change_pct": _finite(case.change_pct),
        "interval_pct": [_finite(bound) for bound in case.interval_pct] if case.interval_pct else None,
        "base_us": case.base_us,
        "head_us": case.head_us,
        "processes": case.processes,
        "rounds": case.rounds,
    }
