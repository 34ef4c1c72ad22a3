from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.project import Project, hosted, plan_one_case
from tests.workflows.conftest import language
from tests.workflows.documents import HOME_REPOSITORY
from tests.workflows.language import Language

__all__ = ["language"]


@pytest.fixture
def project(tmp_path: Path, language: Language) -> Iterator[Project]:
    with hosted(HOME_REPOSITORY, tmp_path, language) as running:
        running.repository.change_main(plan_one_case)
        yield running
