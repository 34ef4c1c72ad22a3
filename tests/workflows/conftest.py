"""What the tests of workflows share: GitHub's parser and evaluator, and the project on a GitHub of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workflows.language import Language
from tests.workflows.project import Project, hosted
from tests.workflows.runner import HOME_REPOSITORY


@pytest.fixture(scope="session")
def language() -> Iterator[Language]:
    with Language() as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, language: Language) -> Iterator[Project]:
    with hosted(HOME_REPOSITORY, tmp_path, language) as running:
        yield running
