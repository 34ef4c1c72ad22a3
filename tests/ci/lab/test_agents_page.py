"""AGENTS.md is one page, and names what there is."""

from __future__ import annotations

import re
from pathlib import Path

import click

from kernelgate.ci.commands import cli

TEXT = (Path(__file__).parents[3] / "AGENTS.md").read_text(encoding="utf-8")


def test_it_is_one_page() -> None:
    assert len(TEXT.splitlines()) <= 60


def test_its_verbs_and_exit_codes_are_the_command_lines() -> None:
    verbs = set(re.findall(r"`kernelgate (\w+)", TEXT))
    assert {"doctor", "fuzz", "bench", "compare", "mcp", "patterns", "prompt"} <= verbs
    assert verbs <= set(cli.cli.list_commands(click.Context(cli.cli)))
    assert re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE) == ["0", "1", "2", "3", "4", "64"]
