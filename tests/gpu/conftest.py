from __future__ import annotations

import pytest

from kernelgate.bench import record
from kernelgate.bench.system import environment


@pytest.fixture(scope="session")
def machine() -> record.Environment:
    """This machine, which has a GPU."""
    found = environment.describe()
    assert environment.kind(found) == "cuda"
    return found
