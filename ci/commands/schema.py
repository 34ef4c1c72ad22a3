"""`kernelgate schema`: the JSON Schema of what a command prints with --json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click
from pydantic import TypeAdapter

from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.record import RunRecord
from kernelgate.ci.commands.options import JsonOption

RECORD = "record"


@click.command()
@click.argument("words", metavar="[COMMAND]", nargs=-1)
def schema(words: tuple[str, ...]) -> None:
    """Print the JSON Schema of what COMMAND prints with --json, such as `session next`, or of the run record.

    Without COMMAND: the names of all that have one.
    """
    known = models()
    if not words:
        click.echo("\n".join(known))
        return
    name = " ".join(words)
    if name not in known:
        raise UsageError(f"{name} prints no JSON: `kernelgate schema` lists the commands that do, and {RECORD}")
    click.echo(text(known[name]))


def models() -> dict[str, Any]:
    """What commands print with --json, by their words; and the run record, which `bench` writes."""
    from kernelgate.ci.commands import cli  # which loads this module for the command

    listed = sorted((name, command.params) for name, command in commands(cli.cli))
    made = {name: one.model for name, options in listed for one in options if isinstance(one, JsonOption)}
    return {RECORD: RunRecord, **made}


def commands(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        try:
            command = group.get_command(context, name)
        except ModuleNotFoundError:  # of an extra that is not installed
            continue
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        elif command is not None:
            yield f"{before}{name}", command


def text(model: Any) -> str:
    made = TypeAdapter(model).json_schema(mode="serialization", by_alias=True)
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **made}, indent=2)
