"""The fake GitHub, and the bot that posts to it."""

from pathlib import Path

import pytest

from kernelgate.ci.github import assemble
from tests.attacks.honest import PullRequestRuns, judged_once
from tests.ci.conftest import desk, github, quick_cards
from tests.ci.desk import Desk

__all__ = ["desk", "github", "quick_cards"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A record that was judged before is not judged again."""
    monkeypatch.setattr(assemble, "judge", judged_once)
    return tmp_path


@pytest.fixture
def pull(desk: Desk, folder: Path) -> PullRequestRuns:
    return PullRequestRuns(desk, folder)
