from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bench.in_process import ThreadChild, ThreadParent


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Workers run in threads of this process, and a case is warmed up no longer than it must be."""
    import torch  # here, because other tests of bench do without it

    from kernelgate.bench.check import fuzz, fuzz_worker
    from kernelgate.bench.kernel import card_check
    from kernelgate.bench.timing import paired, worker

    for leader, worked in ((paired, worker), (fuzz, fuzz_worker), (card_check, card_check)):
        monkeypatch.setattr(leader, "Child", ThreadChild)
        monkeypatch.setattr(worked, "Parent", ThreadParent)
    monkeypatch.setattr(worker, "WARM_UP_S", 0.01)
    monkeypatch.setattr(worker, "CASE_WARM_UP_S", 0.01)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
