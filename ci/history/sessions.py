"""Optimisation sessions in the index. Their logs stay in the checkout, `.ci/sessions`: the index only finds them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from kernelgate.ci.history import database
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.tables import SESSION


@dataclass(frozen=True)
class SessionEntry:
    """What the index holds of a session; columns of the table `session`."""

    name: str
    repository: str
    """Empty where it is not known."""
    source: str
    """Measured by kernelgate, or recorded by people in a document."""
    opened: str | None
    objective: str
    card: str | None
    gpu: str | None
    closed: str | None
    minutes: float
    speedup: float | None
    """Times as fast as the reference."""
    gain_kept_pct: float
    tries: int
    kept: int
    blind: int
    usd: float


def put(index: Database, repository: str, entries: Iterable[SessionEntry]) -> int:
    """The index holds exactly these sessions of the repository; how many they are."""
    rows = [asdict(entry) for entry in entries]
    with database.writing(index) as connection:
        connection.execute(sa.delete(SESSION).where(SESSION.c.repository == repository))
        if rows:
            connection.execute(sa.insert(SESSION), rows)
    return len(rows)


def listed(index: Database) -> list[SessionEntry]:
    """All sessions, by the time they were opened; those without one first."""
    order = (sa.func.coalesce(SESSION.c.opened, ""), SESSION.c.name)
    with database.reading(index) as connection:
        return [SessionEntry(**row._mapping) for row in connection.execute(sa.select(SESSION).order_by(*order))]
