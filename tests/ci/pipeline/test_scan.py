"""`kernelgate scan`: which past commits changed a kernel's time."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from kernelgate.bench import record
from kernelgate.bench.measure.bisect import MeasuredCommits, Workbench
from kernelgate.bench.record import Timing
from kernelgate.ci.document import render
from kernelgate.ci.judge.case import Status
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.pipeline.scan import Budget, Survey, halving, survey, windows
from kernelgate.ci.policy import policy
from kernelgate.ci.report import scan as reported
from kernelgate.ci.report.scan import ScanAnswer, ScannedCase, ScannedChange, ScannedLevel
from tests import miniature
from tests.called import EndsWith
from tests.ci.test_bisect_verb import CARD, LOOP, source

ROOT = Path(__file__).parents[3]
SHAS = [f"{number:x}" * 40 for number in range(1, 7)]


def change(at: int, pct: float, *between: int, confirmed: bool = True, said: str = "") -> ScannedChange:
    return ScannedChange(
        commit=SHAS[at],
        subject=f"Subject {at}",
        before=SHAS[at - 1 - len(between)],
        between=tuple(SHAS[one] for one in between),
        change_pct=pct,
        interval_pct=(pct - 0.2, pct + 0.2) if confirmed else None,
        said=said,
        folder=f"out/scan/norm/{SHAS[at][:9]}" if confirmed else "",
    )


def scanned(**parts: object) -> ScanAnswer:
    levels = tuple(ScannedLevel(commit=sha, subject="s", above_newest_pct=at) for at, sha in enumerate(SHAS))
    case = ScannedCase(case="norm/n64", touching=6, levels=levels, visible_pct=0.6).model_copy(update=parts)
    return ScanAnswer(since="6mo", ends=(SHAS[0], SHAS[-1]), commits=40, cases=(case,))


def test_what_was_found_is_said_with_its_intervals_and_what_to_do_next() -> None:
    found = scanned(
        slower=(change(1, 4.1), change(4, 2.0, 2, 3)),
        faster=(change(5, -3.0),),
        unconfirmed=(change(2, 1.0, confirmed=False, said="the budget is spent"),),
        not_measured={SHAS[2]: "it does not compile"},
        no_time=1,
    )
    text = render.comment(reported.report(found))
    assert text.startswith("### ❌ 2 commits in the last 6mo made a kernel slower, 1 made one faster\n")
    assert "| ❌ `222222222` | **+4.1%** | [+3.9, +4.3] | Subject 1 | `norm/n64` |" in text
    assert "| ❔ `333333333` | **about +1.0%** | not confirmed: the budget is spent | Subject 2 | `norm/n64` |" in text
    assert "`555555555` or 2 other commits before it changed `norm/n64`: `kernelgate bisect 222222222 555555555" in text
    assert "the budget left no time for 1 commit" in text
    assert "`kernelgate history add out/scan/norm/222222222/run.json" in text
    assert "6 libraries were timed, which shows changes from 0.6% on." in text
    assert found.exit_code == 1


def test_the_exit_code_says_whether_something_became_slower() -> None:
    unknown = "❔ Whether a commit in the last 6mo changed a kernel's time could not be told"
    for found, code, said in (
        (scanned(), 0, "✅ No commit in the last 6mo is known to have changed a kernel's time"),
        (scanned(faster=(change(1, -4.0),)), 0, "✅ 1 commit in the last 6mo made a kernel faster, none slower"),
        (scanned(levels=(), fault="no"), 3, unknown),
    ):
        assert (found.exit_code, render.first_line(reported.report(found))) == (code, said)


def test_wherever_building_stops_what_was_built_is_spread_evenly() -> None:
    places = list(range(33))
    order = list(halving(places))
    assert sorted(order) == places
    assert order[:3] == [32, 0, 16]
    for stop in (5, 9, 17):
        assert max(after - before for before, after in pairwise(sorted(order[:stop]))) <= 32 // (stop - 1)
    assert list(windows([1], 8)) == [], "one commit has no neighbour"


def surveyed(together: list[bool]) -> Survey:
    """Of 10 commits, each 1% slower than the one before; `together`: whether libraries share each process, in turn."""
    shas = [f"{at:040x}" for at in range(10)]
    kinds = iter(together)

    def measure(places: list[int], _: int) -> MeasuredCommits:
        bench.together = next(kinds)
        samples = {f"commit:{shas[at]}": tuple(100 * 1.01**at + 0.01 * (one % 7) for one in range(40)) for at in places}
        return MeasuredCommits(Timing(case="n64", samples_us=samples), tuple(places), {}, bench.together)

    bench = SimpleNamespace(
        range=SimpleNamespace(last=9, touching=lambda _: frozenset(range(1, 10)), build=lambda *_: None),
        paths=list,
        card=SimpleNamespace(name="norm"),
        setup=SimpleNamespace(device="cuda"),
        shas=shas,
        side=lambda place: f"commit:{shas[place]}",
        together=True,
        build=lambda _: None,
        same=lambda *_: False,
        measure=measure,
    )
    return survey(cast(Workbench, bench), Budget(3600.0))


@pytest.mark.parametrize(("together", "reads"), [([True] * 4, 4), ([False] * 4, 4), ([True, False, False, False], 3)])
def test_neighbours_of_every_process_are_compared_also_where_libraries_take_turns(
    together: list[bool], reads: int
) -> None:
    """Two windows, each in two processes; what was measured together is forgotten once libraries take turns."""
    found = surveyed(together)
    assert len(found.reads) == reads
    for before in range(9):
        change, error = found.difference(before, before + 1) or (0.0, 0.0)
        assert change == pytest.approx(math.log(1.01), abs=1e-3)
        assert error > 0


def test_the_page_says_what_was_found_in_this_repositorys_own_history() -> None:
    """The comparison that the scan made: the commit that chose accuracy, against the one before it."""
    made = record.read(ROOT / "tests/data/scan/accurate_path_h100.json")
    [case] = judge(made, policy.load(ROOT / ".ci/kernelgate.toml")).cases
    low, high = case.interval_pct or (0.0, 0.0)
    said = f"{made.run.head_sha or '':.8}, {case.change_pct:+.1f}% [{low:+.1f}, {high:+.1f}]"
    assert case.status is Status.REGRESSED
    assert said in (ROOT / "docs/bisect.md").read_text(encoding="utf-8")


def test_the_page_says_what_was_found_of_five_planted_changes() -> None:
    made = ScanAnswer.model_validate_json((ROOT / "tests/data/scan/planted_h200.json").read_text(encoding="utf-8"))
    [case] = made.cases
    found = sorted((one.change_pct for one in (*case.slower, *case.faster)), reverse=True)
    *others, last = (f"{one:+.1f}%".replace("-", "−") for one in found)
    said = f"{', '.join(others)} and {last}"
    assert f"found these five and no other: {said}" in " ".join((ROOT / "docs/bisect.md").read_text("utf-8").split())
    assert (made.commits, case.unconfirmed, case.not_measured, case.no_time) == (11, (), {}, 0)
    [judged] = judge(record.read(ROOT / "tests/data/scan/planted_least_h200.json"), policy.load()).cases
    least = min(case.slower, key=lambda one: one.change_pct)
    assert judged.change_pct == pytest.approx(least.change_pct)
    assert judged.interval_pct == pytest.approx(least.interval_pct)


def test_no_step_begins_that_would_end_past_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    now, waits = [0.0], list[float]()
    monkeypatch.setattr("kernelgate.bench.system.lock.time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr("kernelgate.bench.system.lock._waits", waits)
    budget, begun = Budget(100.0), list[str]()

    def take(kind: str, seconds: float, until: float = 1.0) -> None:
        while budget.holds(kind, until):
            with budget.step(kind):
                now[0] += seconds
            begun.append(kind)

    take("build", 20.0, until=0.5)
    take("process", 7.0, until=0.7)
    take("comparison", 11.0)
    assert begun == ["build"] * 2 + ["process"] * 4 + ["comparison"] * 2, "and not a third until 101 s"
    assert now[0] <= 100.0
    now[0] += 500.0
    waits.append(500.0)
    assert budget.left_s >= 0.0, "who waits for others on the device spends none"


def test_what_is_wrong_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    monkeypatch.chdir(miniature.repository(tmp_path / "repo", {".ci/kernels/scale.py": CARD}))
    for option, value, said in (
        ("--since", "lately", "neither a time nor a commit; write 30d,"),
        ("--since", "2026-02-30", "neither a time nor a commit; write 30d,"),
        ("--since", "2999-01-01", "no commit of this branch is that new"),
        ("--budget", "soon", "write a time such as 90s, 30m or 2h"),
    ):
        assert f"{option} {value}: {said}" in ends_with(64, "scan", option, value).err


@pytest.mark.slow
def test_a_planted_slowdown_is_found_and_what_changes_nothing_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    """Beside it a commit that is another library of the same speed, one that does not compile, and one of other files.
    The first one has no card: the checkout's is laid over it."""
    monkeypatch.chdir(miniature.repository(tmp_path / "repo", {"csrc/scale.cpp": source(0)}))
    slow = source(2).replace(LOOP, f"for (int again = 0; again < 6; ++again) {LOOP}")
    shas = [
        miniature.commit(Path.cwd(), files)
        for files in (
            {"csrc/scale.cpp": source(1)},
            {"csrc/scale.cpp": slow, ".ci/kernels/scale.py": CARD},
            {"csrc/scale.cpp": source(3, "broken")},
            {"README": "words"},
            {"csrc/scale.cpp": f"{slow}\nvoid other() {{}}\n"},
        )
    ]
    [case] = json.loads(ends_with(1, "scan", "--since", f"{shas[0]}~1", "--rounds", "30", "--json").out)["cases"]
    [slower] = case["slower"]
    assert (slower["commit"], slower["before"], slower["between"]) == (shas[1], shas[0], [])
    assert slower["interval_pct"][0] > 200
    assert (case["faster"], case["unconfirmed"], list(case["not_measured"])) == ([], [], [shas[2]])
    assert {path.name for path in Path(slower["folder"]).iterdir()} >= {"run.json", "comment.md", "page.html"}
    ends_with(0, "history", "add", f"{slower['folder']}/run.json")
