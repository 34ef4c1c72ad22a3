"""What a command printed with --json, held to the schema that `kernelgate schema` shows."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from kernelgate.ci.commands import schema


@cache
def validator(command: str) -> Draft202012Validator:
    return Draft202012Validator(_closed(json.loads(schema.text(schema.models()[command]))))


def validated(command: str, text: str) -> Any:
    """The one object, which has no field that the schema does not name, at any depth."""
    answer = json.loads(text)
    validator(command).validate(answer)
    return answer


def _closed(schema: Any) -> Any:
    """Schemas are open, because fields are added; today's answers have no others."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    shut = {"additionalProperties": False} if "properties" in schema else {}
    return {**shut, **{key: _closed(one) for key, one in schema.items()}}
