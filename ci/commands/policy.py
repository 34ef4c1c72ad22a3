"""`kernelgate policy`: every number that decides."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from kernelgate.ci.commands import options
from kernelgate.ci.commands.options import Answered
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
def policy(words: tuple[str, ...], policy_file: Path | None, preset: str) -> Answered:
    """Print every number that decides, with its source: the file, a preset, the default, or a constant's module.

    WORDS: only those whose name holds one of them, with their reasons.
    """
    every = policies.numbers(policy_file, preset)
    chosen = tuple(one for one in every if not words or any(word.lower() in one.name.lower() for word in words))
    lines = [f"{one.name} = {one.value}  ({one.source})" for one in chosen]
    if words:
        lines = [f"{line}\n    {one.reason}" if one.reason else line for line, one in zip(lines, chosen, strict=True)]
    return Answered(DecidingNumbers(chosen), "\n".join(lines))
