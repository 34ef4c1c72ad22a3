"""A GitHub to talk to, and a bot that never really waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fakes.github_server import FakeGitHub

from ci.actions import Step
from ci.github import Bot, connect


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


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub() as fake:
        yield fake


@pytest.fixture
def desk(github: FakeGitHub, tmp_path: Path) -> Iterator[Desk]:
    slept: list[float] = []
    outputs, summary = tmp_path / "outputs", tmp_path / "summary.md"
    environment = github.environment | {
        "GITHUB_OUTPUT": str(outputs),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_RUN_ID": "77",
        "GITHUB_RUN_ATTEMPT": "1",
    }
    bot = connect(Step(environment), sleep=slept.append, pause_s=0)
    yield Desk(github, bot, outputs, summary, slept)
    bot.repository.requester.close()
