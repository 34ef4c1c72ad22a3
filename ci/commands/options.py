"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

PATH = click.Path(path_type=Path)

policy_file = click.option("--policy", "policy_file", type=PATH, help="Default: .ci/kernelgate.toml.")
preset = click.option("--preset", default="default", show_default=True, help="The policy's preset, such as strict.")


class JsonOption(click.Option):
    """`--json`, with the model that it prints, whose schema `kernelgate schema` shows."""

    def __init__(self, *words: Any, model: Any, **more: Any) -> None:
        super().__init__(*words, **more)
        self.model = model


def answers(model: Any, text: str = "Print one JSON object.") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Gives a command its `--json`, as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, cls=JsonOption, model=model, help=text)


def model_of(command: click.Command) -> Any | None:
    """What the command prints with --json; None where it has no such option."""
    return next((option.model for option in command.params if isinstance(option, JsonOption)), None)


def step_answer(step: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a step of a workflow its --json; its outputs and its exit code stay as they are."""
    from kernelgate.ci.github import actions

    @answers(actions.StepAnswer, "Print one JSON object: the step's `outputs`, and what it `said`.")
    @wraps(step)
    def answered(*words: Any, as_json: bool, **options: Any) -> Any:
        if not as_json:
            return step(*words, **options)
        with actions.answering() as answer:
            code = step(*words, **options)
        click.echo(answer.shown())
        return code

    return answered


def two_sides(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """The options that name base and head, of which the base may be left out."""
    return both_sides(click.option("--alone", is_flag=True, help="The head without a base.")(command))


def both_sides(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """The options that name base and head."""
    for option in (
        click.option("--head-library", type=PATH, help="This compiled library is the head."),
        click.option("--head", help="This commit is the head, instead of the working tree."),
        click.option("--base-library", type=PATH, help="This compiled library is the base."),
        click.option("--base", help="The base commit. Default: where this branch left the default branch."),
    ):
        command = option(command)
    return command
