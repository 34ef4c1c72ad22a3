"""What the judge is told of earlier measurements, and how cases moved on the default branch: from the history that this
process's environment names, if it does.

Nothing else can name one: no record, no pull request and no file of a checkout.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import astuple
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from kernelgate.bench.core.errors import KernelgateError, first_line
from kernelgate.bench.record import RunRecord
from kernelgate.ci.document.escape import is_address
from kernelgate.ci.history.facts import INDEX_FILE, CaseName
from kernelgate.ci.judge.prior import NO_HISTORY, History, Past, no_past
from kernelgate.ci.report.gpu import CaseNights, NightsByCase, no_nights

if TYPE_CHECKING:
    from kernelgate.ci.history.past import AskedCases

DATABASE, STORE = "KERNELGATE_HISTORY_DATABASE", "KERNELGATE_HISTORY_STORE"
SITE = "KERNELGATE_DASHBOARD"


def past(say: Callable[[str], None]) -> Past:
    """Asks the configured history. One that cannot be read is said once, and stops nothing."""
    where = index()
    if where is None:
        return no_past
    broken: list[str] = []

    @lru_cache(maxsize=64)
    def known(wanted: AskedCases) -> History:
        from kernelgate.ci.history import database, past

        with database.opened(where, make=False) as opened:
            return past.of_database(opened, wanted)

    def ask(record: RunRecord) -> History:
        if broken:
            return NO_HISTORY
        try:
            from kernelgate.ci.history import past

            wanted = past.asked(record)
            return known(wanted) if wanted else NO_HISTORY
        except ModuleNotFoundError as error:
            broken.append(lacks(error))
        except (KernelgateError, ValueError) as error:
            broken.append(first_line(error))
        say(f"{broken[0]}; judged without a history, which takes more processes")
        return NO_HISTORY

    return ask


def index() -> str | None:
    store, database = os.environ.get(STORE), os.environ.get(DATABASE)
    if database or not store or "://" in store:
        return database or None
    return str(Path(store) / INDEX_FILE)


def lacks(error: ModuleNotFoundError) -> str:
    return f"the history needs {error.name}, which is not installed: pip install 'kernelgate[history]'"


def nights(say: Callable[[str], None]) -> Callable[[RunRecord], NightsByCase]:
    """Asks an index that is a file; each case has its page, where the dashboard's address is known."""
    where, site = os.environ.get(DATABASE), os.environ.get(SITE, "").rstrip("/")
    if not where or "://" in where or not Path(where).exists():
        return no_nights
    page = site if is_address(site) else ""

    def asked(record: RunRecord) -> NightsByCase:
        found, gpu = {}, record.environment.device.name or ""
        try:
            from kernelgate.ci.history import database, past
            from kernelgate.ci.report.dashboard import page_id

            with database.opened(Path(where)) as opened, database.reading(opened) as connection:
                for case in record.cases:
                    name = CaseName(record.run.repository or "", case.key.card, case.key.id, gpu)
                    if known := past.last_times(connection, name):
                        days, times_us = zip(*known, strict=True)
                        address = f"{page}/series/{page_id(astuple(name))}.html" if page else None
                        found[case.key] = CaseNights(times_us, days[0], days[-1], address)
            return found
        except ModuleNotFoundError as error:
            say(lacks(error))
        except (KernelgateError, OSError) as error:
            say(f"the history is not shown: {first_line(error)}")
        return {}

    return asked
