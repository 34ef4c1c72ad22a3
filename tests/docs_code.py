"""The commands of a page of documentation, as they stand there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from kernelgate.ci.commands import cli

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def blocks(page: Path, language: str) -> list[str]:
    return [text for name, text in FENCE.findall(page.read_text(encoding="utf-8")) if name == language]


def commands(page: Path) -> Iterator[str]:
    """The lines of its consoles that begin with `$`, and those of its scripts."""
    for text in blocks(page, "console"):
        yield from re.findall(r"^\$ (.+)$", text, flags=re.MULTILINE)
    for text in blocks(page, "sh"):
        yield from text.splitlines()


def parsed(line: str) -> None:
    """Fails where the command line does not take a line such as `kernelgate session try "WHAT" "WHY"`."""
    verb, *words = shlex.split(line, comments=True)[1:]
    found: click.Command | None = cli.cli.get_command(click.Context(cli.cli), verb)
    if isinstance(found, click.Group) and words:
        verb, *words = words
        found = found.get_command(click.Context(found), verb)
    assert found is not None, line
    found.make_context(verb, words)


def top_level() -> dict[str, click.Command]:
    """The commands of `kernelgate`, which loads each when it is called."""
    context = click.Context(cli.cli)
    listed = {name: cli.cli.get_command(context, name) for name in cli.cli.list_commands(context)}
    return {name: command for name, command in listed.items() if command is not None}
