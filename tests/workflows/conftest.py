from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.workflows.language import Language


@pytest.fixture(scope="session")
def language() -> Iterator[Language]:
    with Language() as running:
        yield running
