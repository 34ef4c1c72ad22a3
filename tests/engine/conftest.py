from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.project import Project, hosted, plan_one_case
from tests.engine.starter import running
from tests.workflows.conftest import language
from tests.workflows.documents import HOME_REPOSITORY
from tests.workflows.language import Language

__all__ = ["language"]


@pytest.fixture(scope="session")
def starter() -> Iterator[str]:
    with running() as name:
        yield name


@pytest.fixture
def project(tmp_path: Path, language: Language, starter: str) -> Iterator[Project]:
    with hosted(HOME_REPOSITORY, tmp_path, language, starter) as project:
        project.repository.change_main(plan_one_case)
        yield project
