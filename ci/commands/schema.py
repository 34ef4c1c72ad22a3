"""`kernelgate schema`: the JSON Schema of what a command prints with --json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click
from pydantic import TypeAdapter

from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.record import RunRecord
from kernelgate.ci.commands.options import model_of

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

    listed = {name: model for name, command in commands(cli.cli) if (model := model_of(command)) is not None}
    return {RECORD: RunRecord, **dict(sorted({**_beside(), **listed}.items()))}


def _beside() -> dict[str, Any]:
    """Of commands whose `--json` does not name its model itself."""
    from kernelgate.ci.lab.metrics import SessionsBeside
    from kernelgate.ci.lab.state import SessionAnswer, SessionState

    session = ["new", "next", "gate", "try", "keep", "revert", "note", "cost", "close", "review", "submit", "page"]
    return {
        "session metrics": SessionsBeside,
        "session status": SessionState,
        **dict.fromkeys(map("session {}".format, session), SessionAnswer),
    }


def commands(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command by its words, such as `session next`."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        elif command is not None:
            yield f"{before}{name}", command


def text(model: Any) -> str:
    made = TypeAdapter(model).json_schema(mode="serialization", by_alias=True)
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **made}, indent=2)
