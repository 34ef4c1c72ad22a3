"""`kernelgate policy`: every number that decides."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from kernelgate.ci.commands import options
from kernelgate.ci.document import answer
from kernelgate.ci.policy import policy as policies
from kernelgate.ci.policy.constants import DecidingNumber


@dataclass(frozen=True)
class DecidingNumbers:
    numbers: tuple[DecidingNumber, ...]
    """The policy's keys, then the constants of the modules."""


@click.command()
@click.argument("words", nargs=-1)
@options.answers(DecidingNumbers)
@options.policy_file
@options.preset
def policy(words: tuple[str, ...], as_json: bool, policy_file: Path | None, preset: str) -> None:
    """Print every number that decides, with its source: the file, a preset, the default, or a constant's module.

    WORDS: only those whose name holds one of them, with their reasons.
    """
    every = policies.numbers(policy_file, preset)
    chosen = tuple(one for one in every if not words or any(word.lower() in one.name.lower() for word in words))
    if as_json:
        click.echo(answer.shown(DecidingNumbers(chosen)))
        return
    for one in chosen:
        click.echo(f"{one.name} = {one.value}  ({one.source})")
        if words and one.reason:
            click.echo(f"    {one.reason}")
