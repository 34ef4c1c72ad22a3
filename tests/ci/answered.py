"""What a verb printed with --json, held to the schema that is published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).parents[2] / "docs/schemas"


def validated(name: str, text: str) -> Any:
    """The one object. Besides the schema, it has no field that the schema does not name."""
    answer = json.loads(text)
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(answer)
    options = [_resolved(one, schema) for one in schema.get("anyOf", [schema])]
    assert any(answer.keys() <= one["properties"].keys() for one in options), answer.keys()
    return answer


def _resolved(one: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = schema["$defs"][one["$ref"].rpartition("/")[2]] if "$ref" in one else one
    return found
