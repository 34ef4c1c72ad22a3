"""A dashboard that shows everything that there is: environments, changes of each state, odd nights, two GPUs."""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from kernelgate.ci.history.entry import SeriesEvent
from kernelgate.ci.history.facts import Change, HistoryComparison, State
from kernelgate.ci.lab import session_entries
from kernelgate.ci.lab.log import Closed
from kernelgate.ci.lab.state import SessionSummary, summary
from kernelgate.ci.policy.policy import Costs, GpuPrice, Policy
from kernelgate.ci.report.dashboard import Dashboard, SitePoint, SiteSeries, SiteWeek
from tests.ci.lab import session_events

START = datetime(2026, 1, 5, 3, tzinfo=UTC)
PIN = "beef" * 10
H200, L4 = "NVIDIA H200", "NVIDIA L4"
HOSTILE = "</script><img src=x onerror=alert(1)>\u202e ${7*7} ' onmouseover='x"


def sha(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()[:40]


def points(count: int, us: float, seed: int = 1, step: tuple[int, float] = (0, 0.0)) -> tuple[SitePoint, ...]:
    """A night each; from point `step[0]` on slower by the logarithm `step[1]`; in its last quarter on a new driver."""
    drawn = random.Random(seed)
    made = []
    for at in range(count):
        level = drawn.gauss(0, 0.001) + (step[1] if at >= step[0] else 0.0)
        environment = int(at >= 3 * count // 4)
        made.append(
            SitePoint(
                commit=sha(at),
                made=(START + timedelta(days=at)).strftime("%Y-%m-%dT%H:%M:%SZ"),
                environment=environment,
                us=us * math.exp(level + 0.02 * environment),
                reach=0.002 + 0.001 * drawn.random(),
                pinned=level - 0.05,
                pinned_reach=0.0015,
                reference_us=1.3 * us,
                finding="another process was on the GPU" if at % 97 == 40 else "",
            )
        )
    return tuple(made)


def series(count: int = 200, case: str = "S=512, B=32, fp16", gpu: str = H200, us: float = 118.0) -> SiteSeries:
    step = (count // 2, 0.012)
    return SiteSeries(
        repository="octo-org/kernels",
        card="attention",
        case=case,
        gpu=gpu,
        environments=(
            {"driver": "570.124", "torch": "2.11.0", "cuda": "13.0", "clock_policy": "none"},
            {"driver": "580.65", "torch": "2.11.0", "cuda": "13.0", "clock_policy": "none"},
        ),
        points=points(count, us, len(case), step),
        pin=PIN,
        comparisons=(comparison(sha(count // 2 - 1), sha(count // 2), 1.21, (1.15, 1.27)),),
        changes=(
            change(count // 8, "refuted", 0.4),
            change(count // 2, "confirmed", 1.21),
            change(count - 20, "accepted", 0.9),
            change(count - 6, "suspected", -0.6),
        ),
        note="12 measurements of commits that are not on the default branch are left out.",
    )


def comparison(base: str, head: str, change_pct: float, interval_pct: tuple[float, float]) -> HistoryComparison:
    effect = math.log1p(change_pct / 100)
    return HistoryComparison.model_construct(base=base, head=head, effect=effect, interval_pct=interval_pct)


def change(at: int, state: State, size: float) -> Change:
    return Change(
        kind="step",
        commit=sha(at),
        place=at,
        previous=sha(at - 1),
        previous_place=at - 1,
        environment="",
        state=state,
        change_pct=size,
        interval_pct=(size - 0.06, size + 0.06),
        why="a comparison of both commits shows it",
    )


def decision(made: str, *facts: str) -> SeriesEvent:
    names = ("card", "case", "gpu", "sha", "who", "why")
    return SeriesEvent(kind="accepted", made=made, **dict(zip(names, facts, strict=True)))


def dashboard(count: int = 200) -> Dashboard:
    cases = [f"S={2**size}, B={2 ** (14 - size)}, {dtype}" for size in (7, 9, 11, 13) for dtype in ("fp16", "bf16")]
    many = [series(count, case, H200, 40.0 * 1.9**at) for at, case in enumerate(cases)]
    calm = [replace(one, gpu=L4, changes=(), comparisons=(), note="") for one in many[:2]]
    norm = replace(series(count, "M=4096, N=8192", us=31.0), card="rmsnorm", changes=(), note="")
    return Dashboard(
        made="2026-11-22 18:00 UTC",
        series=(*many, *calm, norm),
        weeks=tuple(week(number) for number in range(8)),
        decisions=(decision("2026-06-11T10:00:00Z", "attention", cases[0], H200, sha(110), "maria", "needed"),),
        release="v1.2",
        released=frozenset(sha(at) for at in range(count // 3)),
        costs=Costs(gpu_hour={H200: GpuPrice(hour=3.5, day=date(2026, 1, 2), source="a made-up price list")}),
        sessions=session_entries.shown(sessions()),
    )


def sessions(said: str = "faster", count: int = 3) -> list[SessionSummary]:
    """One that people recorded, a search of a script, and measured ones, the last with an interval."""
    sure = {"speedup": 1.4, "speedup_low": 1.3, "speedup_high": 1.5}
    told = {"gpu": said, "card": said, "objective": said}
    measured = [
        (session_events.opened(name=f"measured-{number}", **told), *session_events.passed(0.5 + number / 10),
         Closed(at=session_events.clock(90 - 9 * number), why="done", said=said))
        for number in range(count)
    ]  # fmt: skip
    search = (session_events.opened(name="search"), session_events.gate("profile", 0, seconds=None))
    recorded = session_events.opened(name="recorded", at=None, source="recorded")
    every = [(recorded, Closed(why="done", said="", minutes=180.0)), search, *measured[:-1]]
    last = session_events.gate("performance", 5, figures=sure)
    return [summary(one, Policy(), session_events.clock(9)) for one in (*every, (*measured[-1], last))]


def week(number: int) -> SiteWeek:
    return SiteWeek(
        monday=(START + timedelta(weeks=40 - number)).strftime("%Y-%m-%d"),
        gpu=H200 if number % 3 else L4,
        records=31 + number,
        unjudged=Counter({"another process used the GPU": number} if number else {}),
        cases=800,
        untrusted=3 * number,
        spreads_pct=[0.08 + 0.01 * number],
        gpu_seconds=Counter(timing=5400.0 - 300 * number, fuzzing=1200.0, profiling=300.0),
        retried_seconds=100.0 * number,
    )


def hostile() -> Dashboard:
    """All that strangers can name is an attack."""
    one = series(40, HOSTILE)
    bad = replace(
        one,
        repository=HOSTILE,
        card=HOSTILE,
        gpu=HOSTILE,
        environments=({"driver": HOSTILE}, {HOSTILE: HOSTILE}),
        points=tuple(
            replace(point, commit=f"../../{HOSTILE}{at}", finding=HOSTILE if at % 2 else "")
            for at, point in enumerate(one.points[:9])
        )
        + one.points[9:],
        pin=HOSTILE,
        changes=tuple(replace(each, why=HOSTILE, previous=HOSTILE) for each in one.changes),
        note=HOSTILE,
    )
    decided = decision(*[HOSTILE] * 7)
    weeks = (replace(week(1), gpu=HOSTILE, unjudged=Counter({HOSTILE: 1}), gpu_seconds=Counter({HOSTILE: 1.0})),)
    rows = [replace(one, opened=one.opened.model_copy(update={"name": HOSTILE})) for one in sessions(HOSTILE)]
    shown = session_entries.shown(rows)
    return replace(dashboard(40), series=(bad,), weeks=weeks, decisions=(decided,), release=HOSTILE, sessions=shown)
