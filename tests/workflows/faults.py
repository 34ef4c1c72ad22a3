"""What GitHub's parser and zizmor let pass, and this repository does not: each check yields a sentence for a fault."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import chdir
from tempfile import TemporaryDirectory

import click

from kernelgate.bench.core.errors import OutputError
from kernelgate.ci.commands.cli import cli
from tests.workflows.documents import HOME_REPOSITORY, Workflow, steps, texts

CALLED = f"{HOME_REPOSITORY}/.github/workflows/"
CACHES = ("actions/cache",)
PLAIN = (
    'test "$(gh pr view "$PULL_REQUEST" --json headRefOid --jq .headRefOid)" != "$HEAD_SHA" || gh run rerun "$RUN_ID"',
    'test "$SUCCEEDED" = true',
    'git submodule status | while read -r _ path _; do git submodule update --init --recursive "$path"'
    ' || echo "::warning::$path cannot be checked out"; done',
    'echo "$PWD/.venv/bin" >> "$GITHUB_PATH"',
    "mkdir -p .project/.ci\n"
    "test -e .project/.ci/kernelgate.toml || cp .ci/kernelgate.toml .project/.ci/\n"
    "rm -r .ci\n"
    "mv .project/.ci .ci\n",
)
"""Steps that are no verbs and need none."""


def secrets(workflow: Workflow) -> Iterator[str]:
    for text in texts(workflow.content):
        if re.search(r"\bsecrets\b", text):
            yield f"a secret is read: {text!r}"
    for job_name, job in workflow.jobs.items():
        if "secrets" in job:
            yield f"{job_name} hands secrets on"


def caches(workflow: Workflow) -> Iterator[str]:
    """A cache would carry files from a run of a stranger's code into a trusted one."""
    for job_name, step in steps(workflow.content):
        if step.get("uses", "").startswith(CACHES) or "cache" in step.get("with", {}):
            yield f"{job_name} uses a cache"


def no_verbs(workflow: Workflow) -> Iterator[str]:
    """A step that is not one kernelgate verb or make target, or gives a verb a word that it does not take."""
    for job_name, step in steps(workflow.content):
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
        with TemporaryDirectory() as folder, chdir(folder):  # an output is tried where it shall be
            command.make_context(words[called - 1], numbers)
    except (click.MissingParameter, OutputError):  # a folder and a file may both be variables
        return None
    except click.ClickException as error:
        return error.format_message()
    return None
