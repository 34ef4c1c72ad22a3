"""A history of a test's own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelgate.ci.history import database, store
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.keep import Archive
from kernelgate.ci.policy.policy import Policy
from tests import miniature

QUICK = Policy()
"""Judges a record in a tenth of the time."""


@pytest.fixture(scope="session")
def empty_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copied by each test: the tables take 50 ms to make."""
    path = tmp_path_factory.mktemp("empty") / "index.sqlite"
    database.at(path).engine.dispose()
    return path


@pytest.fixture
def where(empty_sqlite: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(empty_sqlite, tmp_path / "index.sqlite"))


@pytest.fixture
def index_at(where: Path) -> Iterator[Database]:
    found = database.at(where)
    yield found
    found.engine.dispose()


@pytest.fixture
def archive(index_at: Database, tmp_path: Path) -> Archive:
    return Archive(store.at(str(tmp_path / "store")), index_at, QUICK)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two commits on its default branch, a policy that judges quickly, and no history yet."""
    files = {".ci/kernelgate.toml": "[gates]\nregression_pct = 3.0\n"}
    root = miniature.repository(tmp_path / "checkout", files)
    miniature.commit(root, {"README": "two"})
    for name in ("KERNELGATE_HISTORY_STORE", "KERNELGATE_HISTORY_DATABASE", "GITHUB_OUTPUT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(root)
    return root
