"""Where the bot sits in a test."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kernelgate.ci.github.client import Bot
from tests.fakes.github_server import FakeGitHub


@dataclass
class Desk:
    """The bot at its desk: what a step has around it, and how long it would have waited."""

    github: FakeGitHub
    bot: Bot
    outputs_file: Path
    summary_file: Path
    slept: list[float] = field(default_factory=list)

    @property
    def outputs(self) -> dict[str, str]:
        text = self.outputs_file.read_text(encoding="utf-8") if self.outputs_file.exists() else ""
        return dict(line.split("=", 1) for line in text.splitlines())

    @property
    def summary(self) -> str:
        return self.summary_file.read_text(encoding="utf-8") if self.summary_file.exists() else ""
