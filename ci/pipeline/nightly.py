"""How the cases of a record moved on the default branch, from the index that this process's environment names.

No record and no pull request can name one. What cannot be read is said, and shown nowhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from kernelgate.bench.core.errors import KernelgateError, first_line
from kernelgate.bench.record import RunRecord
from kernelgate.ci.document.escape import is_address
from kernelgate.ci.report.gpu import CaseNights, NightsByCase, no_nights

DATABASE, SITE = "KERNELGATE_HISTORY_DATABASE", "KERNELGATE_DASHBOARD"


def nights(say: Callable[[str], None]) -> Callable[[RunRecord], NightsByCase]:
    """Asks the index, where there is one that is a file; each case with its page, where the dashboard's address is
    known."""
    where, site = os.environ.get(DATABASE), os.environ.get(SITE, "").rstrip("/")
    if not where or "://" in where or not Path(where).exists():
        return no_nights
    page = site if is_address(site) else ""

    def asked(record: RunRecord) -> NightsByCase:
        try:
            return _nights(Path(where), record, page)
        except ModuleNotFoundError as error:
            say(f"the history needs {error.name}, which is not installed: pip install 'kernelgate[history]'")
        except (KernelgateError, OSError) as error:
            say(f"the history is not shown: {first_line(error)}")
        return {}

    return asked


def _nights(index: Path, record: RunRecord, site: str) -> NightsByCase:
    from kernelgate.ci.history import database, past
    from kernelgate.ci.report.dashboard import page_id

    opened = database.at(index)
    found = {}
    try:
        with database.reading(opened) as connection:
            for case in record.cases:
                gpu = record.environment.device.name or ""
                names = (record.run.repository or "", case.key.card, case.key.id, gpu)
                known = past.last_times(connection, names)
                if known is not None:
                    address = f"{site}/series/{page_id(names)}.html" if site else None
                    found[case.key] = CaseNights(known.times_us, known.first_day, known.last_day, address)
    finally:
        opened.engine.dispose()
    return found
