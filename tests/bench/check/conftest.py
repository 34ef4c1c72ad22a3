"""Kernels of attention with a planted fault, each built once, and a lock of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from kernelgate.bench.build.library import Library
from kernelgate.bench.system import lock, worker
from kernelgate.bench.system.worker import WorkerProcess
from tests import faulty


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Library]:
    return cache(lambda fault: faulty.build(tmp_path_factory.mktemp(fault) / "library", f"checked_{fault}", fault))


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock.tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def apart(in_process: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - whose threads it takes back
    """Workers are processes all the same: a kernel may crash or hang them."""
    monkeypatch.setattr(worker, "WorkerProcess", WorkerProcess)
