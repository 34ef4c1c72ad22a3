from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bench.in_process import put_workers_in_threads


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Workers run in threads of this process, and a case is warmed up no longer than it must be."""
    import torch  # here, because other tests of bench do without it

    put_workers_in_threads(monkeypatch)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
