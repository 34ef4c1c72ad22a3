from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.engine import Engine
from tests.workflows.language import Language
from tests.workflows.project import Project, hosted
from tests.workflows.runner import HOME_REPOSITORY


@pytest.fixture(scope="session")
def language() -> Iterator[Language]:
    """Says which workflow an event starts, and fills in a dispatch; act evaluates the expressions itself."""
    with Language() as running:
        yield running


def plan_one_case(tree: Path) -> None:
    """The card of the default branch: what the made-up GPU times is all that there is."""
    card = tree / ".ci/kernels/attention.py"
    before = card.read_text("utf-8")
    after = before.replace("    cpu_cases = [", "    cases = [case(512, 32, 8)]\n    cpu_cases = [")
    assert after != before
    card.write_text(after, "utf-8")


@pytest.fixture
def project(tmp_path: Path, language: Language) -> Iterator[Project]:
    with hosted(HOME_REPOSITORY, tmp_path, language, Engine) as running:
        running.repository.change_main(plan_one_case)
        yield running
