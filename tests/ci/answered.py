"""What a verb printed with --json, held to the schema that is published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).parents[2] / "docs/schemas"


def validated(name: str, text: str) -> Any:
    """The one object, which has no field that the schema does not name, at any depth."""
    answer = json.loads(text)
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator(_closed(schema)).validate(answer)
    return answer


def _closed(schema: Any) -> Any:
    """Published schemas are open, because fields are added; today's answers have no others."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    shut = {"additionalProperties": False} if "properties" in schema else {}
    return {**shut, **{key: _closed(one) for key, one in schema.items()}}
