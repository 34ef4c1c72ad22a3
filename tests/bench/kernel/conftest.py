from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.build import archs
from kernelgate.bench.build import cache as build_cache
from kernelgate.bench.kernel import card_check
from tests.bench.in_process import ThreadWorker


@pytest.fixture
def no_gpu(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each source is compiled once for all tests, and its library is asked in a thread."""
    monkeypatch.setenv(build_cache.CACHE_VARIABLE, str(shared_cache))
    monkeypatch.delenv(archs.ARCH_LIST, raising=False)
    monkeypatch.setattr(archs, "gpus_at_hand", lambda: ())
    monkeypatch.setattr(card_check, "WorkerProcess", ThreadWorker)
