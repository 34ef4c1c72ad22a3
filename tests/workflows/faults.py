"""What GitHub's parser and zizmor let pass, and this repository does not: each check yields a sentence for a fault."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import click

from kernelgate.ci.commands.cli import cli
from tests.workflows.documents import Workflow, steps, texts

CALLED = "kernelgate/kernelgate/.github/workflows/"
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
CACHES = ("actions/cache",)
PLAIN = (
    'test "$(gh pr view "$PULL_REQUEST" --json headRefOid --jq .headRefOid)" != "$HEAD_SHA" || gh run rerun "$RUN_ID"',
    'test "$SUCCEEDED" = true',
    'echo "$PWD/.venv/bin" >> "$GITHUB_PATH"',
    "mkdir -p .project/.ci\n"
    "test -e .project/.ci/kernelgate.toml || cp .ci/kernelgate.toml .project/.ci/\n"
    "rm -r .ci\n"
    "mv .project/.ci .ci\n",
)
"""Steps that are no verbs and need none."""


def expressions(value: Any) -> Iterator[str]:
    """What stands in `${{ }}` and in each `if:`."""
    if isinstance(value, str):
        yield from EXPRESSION.findall(value)
    elif isinstance(value, dict):
        yield str(value.get("if", ""))
        yield from expressions(list(value.values()))
    elif isinstance(value, list):
        for each in value:
            yield from expressions(each)


def unknown_references(workflow: Workflow, known: dict[str, Workflow]) -> Iterator[str]:
    """Steps, needs, outputs, inputs and matrix keys that an expression names and nothing defines."""
    inputs = set[str]()
    for event in ("workflow_call", "workflow_dispatch"):
        inputs |= set(((workflow.triggers.get(event) or {}).get("inputs")) or {})
    for job_name, job in workflow.jobs.items():
        needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
        yield from _unknown_steps(job_name, job)
        for text in expressions(job):
            for needed, output in re.findall(r"\bneeds\.([\w-]+)(?:\.outputs\.([\w-]+))?", text):
                if needed not in needs:
                    yield f"{job_name} reads needs.{needed} without needing it"
                elif output and output not in _outputs(workflow.jobs[needed], known):
                    yield f"{job_name} reads needs.{needed}.outputs.{output}, which {needed} does not give"
            for name in re.findall(r"\binputs\.([\w-]+)", text):
                if name not in inputs:
                    yield f"{job_name} reads inputs.{name}, which no trigger declares"
            for key in re.findall(r"\bmatrix\.(\w+)", text):
                if key not in job.get("strategy", {}).get("matrix", {}):
                    yield f"{job_name} reads matrix.{key}, which its matrix lacks"


def _unknown_steps(job_name: str, job: dict[str, Any]) -> Iterator[str]:
    earlier = set[str]()
    for step in job.get("steps", ()):
        for text in expressions(step):
            for name in re.findall(r"\bsteps\.([\w-]+)", text):
                if name not in earlier:
                    yield f"{job_name} reads steps.{name} before any step has that id"
        earlier |= {step["id"]} if "id" in step else set()
    for text in expressions(job.get("outputs", {})):
        for name in re.findall(r"\bsteps\.([\w-]+)", text):
            if name not in earlier:
                yield f"{job_name} gives an output of steps.{name}, which it lacks"


def _outputs(job: dict[str, Any], known: dict[str, Workflow]) -> set[str]:
    if "uses" in job:
        called = known[job["uses"].removeprefix(CALLED).removesuffix(".yml@main")]
        return set((called.triggers["workflow_call"] or {}).get("outputs", {}))
    return set(job.get("outputs", {}))


def secrets(workflow: Workflow) -> Iterator[str]:
    for text in texts(workflow.content):
        if re.search(r"\bsecrets\b", text):
            yield f"a secret is read: {text!r}"
    for job_name, job in workflow.jobs.items():
        if "secrets" in job:
            yield f"{job_name} hands secrets on"


def caches(workflow: Workflow) -> Iterator[str]:
    """A cache would carry files from a run of a stranger's code into a trusted one."""
    for job_name, step in steps(workflow):
        if step.get("uses", "").startswith(CACHES) or "cache" in step.get("with", {}):
            yield f"{job_name} uses a cache"


def no_verbs(workflow: Workflow) -> Iterator[str]:
    """A step that is not one kernelgate verb or make target, or gives a verb a word that it does not take."""
    for job_name, step in steps(workflow):
        if "run" not in step or step["run"] in PLAIN:
            continue
        words = shlex.split(step["run"])
        if words[0] == "make" and len(words) == 2:
            continue
        if words[0] != "kernelgate" or ";" in words or "&&" in words or "|" in words:
            yield f"{job_name} runs {step['run']!r}, which is not one verb"
        elif problem := refused(words[1:]):
            yield f"{job_name} runs {step['run']!r}: {problem}"


def commands(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and every group of them, each by its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


def refused(words: list[str]) -> str | None:
    """What the command line has against the words after `kernelgate`; nothing is run."""
    command: click.Command | None = cli
    called = 0
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), words[called])
        called += 1
    if command is None:
        return f"there is no verb {' '.join(words[:called])}"
    numbers = ["1" if word.startswith("$") else word for word in words[called:]]
    # Options that are required may be given as variables, so what is missing is not asked about.
    try:
        command.make_context(words[called - 1], numbers)
    except click.MissingParameter:
        return None
    except click.ClickException as error:
        return error.format_message()
    return None
