"""The --json of verbs that are steps of a workflow: for all of them one form, docs/schemas/step.schema.json."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click


def step_answer(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a step of a workflow its --json; what the step puts out, and its exit code, stay as they are."""

    @click.option("--json", "as_json", is_flag=True, help="One JSON object: the step's `outputs`, and what it `said`.")
    @wraps(verb)
    def answered(*words: Any, as_json: bool, **options: Any) -> Any:
        if not as_json:
            return verb(*words, **options)
        from kernelgate.ci.github import actions

        with actions.answering() as answer:
            code = verb(*words, **options)
        click.echo(answer.shown())
        return code

    return answered
