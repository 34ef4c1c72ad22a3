"""What the nights' canaries tell of each machine: false alarms, detections, and whether it is like its siblings."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from statistics import median

import sqlalchemy as sa

from kernelgate.bench.record import CANARY, EQUAL, MORE
from kernelgate.ci.document.formatting import percent
from kernelgate.ci.history.database import COMPARISON, POINT, RECORD, SERIES

SLOWER, FASTER = {"regressed", "slower"}, {"improved", "faster"}
APART_PCT = 5.0
"""A machine whose canary takes so much more or less than its siblings' median is another GPU than they are. Assumed,
not measured: nobody had three GPUs of one kind for nights on end."""
LEAST_SIBLINGS = 2
"""Of two machines that differ nobody knows which is odd."""


@dataclass(frozen=True)
class CanaryMachine:
    gpu: str
    machine: str
    """The GPU's uuid."""
    equal: int
    """Judged comparisons of equal functions, …"""
    false_alarms: int
    more: int
    """… and of one that does 2% more."""
    detected: int
    us: float
    """Of the newest night."""
    apart_pct: float | None = None
    """Against the median of the newest nights of its siblings; None where there are too few."""
    siblings: int = 0

    @property
    def odd(self) -> str | None:
        """Why it should not measure."""
        if self.apart_pct is None or abs(self.apart_pct) <= APART_PCT:
            return None
        side = "longer" if self.apart_pct > 0 else "less"
        return f"its canary takes {percent(abs(self.apart_pct))} {side} than those of {self.siblings} other {self.gpu}"


def machines(connection: sa.Connection) -> tuple[CanaryMachine, ...]:
    """Every machine that has a canary, by kind and uuid."""
    where = (SERIES.c.card == CANARY, SERIES.c.machine != "")
    key = (SERIES.c.gpu, SERIES.c.machine)
    judged = sa.select(*key, SERIES.c.case, COMPARISON.c.status, sa.func.count()).join(SERIES)
    found: defaultdict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)
    for gpu, machine, case, status, count in connection.execute(
        judged.where(*where, COMPARISON.c.status.is_not(None)).group_by(*key, SERIES.c.case, COMPARISON.c.status)
    ):
        found[gpu, machine][case, status] += count
    times = sa.select(*key, POINT.c.us).select_from(POINT).join(SERIES).join(RECORD)
    times = times.where(*where, SERIES.c.case == EQUAL, POINT.c.side == "head").order_by(RECORD.c.made, RECORD.c.id)
    newest = {(gpu, machine): us for gpu, machine, us in connection.execute(times)}
    made = []
    for (gpu, machine), us in sorted(newest.items()):
        told, others = found[gpu, machine], [at for one, at in newest.items() if one[0] == gpu and one[1] != machine]
        made.append(
            CanaryMachine(
                gpu,
                machine,
                equal=sum(count for (case, _), count in told.items() if case == EQUAL),
                false_alarms=sum(told[EQUAL, status] for status in SLOWER | FASTER),
                more=sum(count for (case, _), count in told.items() if case == MORE),
                detected=sum(told[MORE, status] for status in SLOWER),
                us=us,
                apart_pct=100 * (us / median(others) - 1) if len(others) >= LEAST_SIBLINGS else None,
                siblings=len(others),
            )
        )
    return tuple(made)
