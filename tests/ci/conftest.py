"""A GitHub to talk to, and a bot that never really waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelgate.bench.kernel import card_check
from kernelgate.bench.system.worker import WorkerPool
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.client import connect
from tests.bench.in_process import ThreadWorker
from tests.ci.desk import Desk
from tests.ci.report_examples import HEAD_SHA
from tests.fakes.github_server import FakeGitHub


@pytest.fixture(autouse=True)
def quick_cards(cards_in_forks: None) -> None:
    """Most of what is tested here asks the cards of a checkout first."""


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test asks ends before anything runs: none of the processes that would import torch is started ahead, and
    libraries are asked what they have in a thread."""
    monkeypatch.setattr(WorkerPool, "prepare", lambda *_, **__: None)
    monkeypatch.setattr(card_check, "WorkerProcess", ThreadWorker)


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    monkeypatch.setattr("requests.sessions.get_environ_proxies", lambda *_, **__: {})  # which takes a tenth of the time
    with FakeGitHub() as fake:
        yield fake


@pytest.fixture
def signed_in(github: FakeGitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGitHub:
    """GitHub for a user's own command line, in a folder of its own, that names the repository itself."""
    monkeypatch.chdir(tmp_path)
    for name, value in github.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GITHUB_REPOSITORY")
    monkeypatch.setattr("kernelgate.ci.github.client.time.sleep", lambda _: None)
    return github


@pytest.fixture
def desk(github: FakeGitHub, tmp_path: Path) -> Iterator[Desk]:
    slept: list[float] = []
    outputs, summary = tmp_path / "outputs", tmp_path / "summary.md"
    environment = github.environment | {
        "GITHUB_OUTPUT": str(outputs),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_RUN_ID": "77",
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_SHA": HEAD_SHA,
    }
    bot = connect(Step(environment), sleep=slept.append, pause_s=0)
    yield Desk(github, bot, outputs, summary, slept)
    bot.repository.requester.close()
