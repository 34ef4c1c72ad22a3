"""What is recommended on a profiled kernel and in a session, and what is said of tries in all sessions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.record import Work
from kernelgate.ci.explain import analyze
from kernelgate.ci.explain.analyze import Analysis, analyze_kernel
from kernelgate.ci.lab import advice, folder, log, trying
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import Event, Opened, TriedChange
from kernelgate.ci.lab.state import TRY, state_of
from kernelgate.ci.lab.watching import Watched
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import why
from tests import miniature
from tests.called import EndsWith
from tests.ci.lab import session_events as made
from tests.runs import case, run_record

pytestmark = pytest.mark.usefixtures("reports_at_once")

NSIGHT = Path(__file__).parents[2] / "data" / "nsight"
RECORD = NSIGHT.parent / "causes/bank-conflicts.json"


def write(root: Path, *sessions: tuple[Event, ...]) -> Path:
    for events in sessions:
        assert isinstance(events[0], Opened)
        (root / events[0].name).mkdir(parents=True)
        (root / events[0].name / log.FILE).write_text("".join(map(log.line, events)), encoding="utf-8")
    return root


def swizzled(count: int, change_pct: float = -20.0) -> tuple[tuple[Event, ...], ...]:
    tried = made.tried(1, change_pct, action="swizzle", bottleneck="bank_conflicts")
    return tuple((made.opened(name=f"s{number}"), tried) for number in range(count))


def test_below_five_sessions_nothing_is_said_of_how_often_an_action_helps(tmp_path: Path) -> None:
    [few] = advice.table(write(tmp_path / "few", *swizzled(4))).actions
    [enough] = advice.table(write(tmp_path / "enough", *swizzled(5))).actions
    assert enough.helped_words == "5 of 5"
    assert (few.tries, few.sessions, few.helped_words) == (4, 4, "not measured")
    assert [*advice.table_lines(advice.table(tmp_path / "enough"))][-1].endswith("| 5 of 5 | 20.0% |")


def test_what_failed_or_is_not_certain_did_not_help_and_what_nobody_measured_does_not_count(tmp_path: Path) -> None:
    sure = {"action": "swizzle", "bottleneck": "l2"}
    events = (
        made.opened(),
        made.tried(1, -20, **sure),
        made.tried(2, 0, **sure, outcomes=(), failed="build"),
        made.tried(3, 3, **sure),
        made.tried(4, -5, **sure, failed="measurement"),
        made.tried(5, -5),
    )
    recorded = (made.opened(name="told", source="recorded"), made.tried(1, -50, **sure))
    table = advice.table(write(tmp_path, events, recorded))
    [one] = table.actions
    assert (table.tries, table.sessions, table.helped) == (3, 1, 1)
    assert (one.tries, one.helped, one.failed) == (3, 1, 1)
    assert one.gains_pct == pytest.approx((-3, 20))


def test_recommend_says_what_to_do_why_and_what_was_tried(tmp_path: Path, ends_with: EndsWith) -> None:
    """Counts alone: no gain of one kernel has been shown to be that of another."""
    sessions = write(tmp_path, *swizzled(5))
    lines = ends_with(0, "recommend", RECORD, "--sessions", sessions).out.splitlines()
    assert lines[1].startswith("  1. swizzle: ")
    tried = [line.strip() for line in lines if "tried" in line]
    assert tried[0] == "tried 5 times in 5 sessions against this bottleneck, helped 5 times"
    assert {*tried[1:]} == {"not tried against this bottleneck yet"}
    report = NSIGHT / "bank_conflicts.ncu-rep"
    answer = json.loads(ends_with(0, "recommend", report, "--sessions", sessions, "--json").out)
    assert not [name for name in answer["recommendations"][0] if "pct" in name]
    assert len(answer["recommendations"]) <= advice.SHOWN


def test_a_kernel_at_its_roof_is_done() -> None:
    """A full DRAM is a roof where no more is moved than must be; that the head of this record moves 1.3 times as much
    was planted."""
    [both] = why.both_sides(record.read(NSIGHT.parent / "causes/more-dram-traffic.json"))
    surplus, needed = analyze_kernel(both.head), advice.needed_bytes(NSIGHT.parent / "causes/more-dram-traffic.json")
    assert needed == 352322000
    assert surplus.kernel.figures["dram_bytes"] > 1.2 * needed
    assert advice.done(surplus, needed) is None
    assert advice.done(surplus, 453e6) == "you are done: 90% of DRAM"
    assert advice.done(surplus, None) is None, "nobody says how much it must move"
    assert advice.done(advice.profile(NSIGHT / "tensor.ncu-rep", None), None) == "you are done: 99% of the tensor cores"


PROFILED = (*made.passed(0.4), made.gate("profile", 5, bottleneck="bank_conflicts"))
KEPT = (*PROFILED, made.tried(1, -30, 20, action="swizzle"), made.decided(1, True, 21))


@pytest.fixture(autouse=True, scope="module")
def read_once() -> Iterator[None]:
    """Each report is read once, by its content."""
    known: dict[bytes, tuple[Analysis, ...]] = {}
    read = advice.analyze.analyze

    def analyze(path: Path) -> tuple[Analysis, ...]:
        content = path.read_bytes()
        return known[content] if content in known else known.setdefault(content, read(path))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(advice.analyze, "analyze", analyze)
        yield


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def session(root: Path, *events: Event) -> Session:
    place = root / folder.FOLDER / "one"
    place.mkdir(parents=True, exist_ok=True)
    return Session(place, (made.opened(gpu="NVIDIA H200"), *events))


def put(source: Path, found: Session, name: str) -> Path:
    path = found.folder / folder.WORK / name
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, path)
    return path


def gated(root: Path, *events: Event) -> Session:
    found = session(root, *(events or PROFILED))
    put(NSIGHT / "bank_conflicts.ncu-rep", found, "profile/toy.n4.head.ncu-rep")
    return found


def next_of(found: Session, root: Path) -> tuple[str | None, str | None]:
    at_hand = advice.at_hand(found, root)
    coming_next = state_of(found.events, Policy(), made.clock(30), at_hand).next
    return coming_next.recommend, coming_next.command


def test_after_a_kept_change_its_own_profile_is_asked(here: Path) -> None:
    found = gated(here, *KEPT)
    assert advice.profile_of(found) is None  # the gate's is of a state that is gone
    record = put(RECORD, found, "try-1/run.json")
    assert next_of(found, here) == (
        "kernelgate recommend .ci/sessions/one/work/try-1/run.json",
        f"{TRY} --action swizzle",
    )
    report = put(record, found, "try-1/profile/toy.n4.head.ncu-rep")
    assert advice.profile_of(found) == report  # it says more: NVIDIA's rules


@pytest.mark.parametrize(
    "later",
    [
        (made.tried(1, 3, 20), made.gate("profile", 21, bottleneck="dram"), made.decided(1, False, 22)),
        (made.gate("profile", 21, passed=False),),
    ],
)
def test_a_report_of_another_state_is_not_asked(here: Path, later: tuple[Event, ...]) -> None:
    """One that the gate made of a change that was reverted, or that a failed attempt wrote over."""
    assert advice.profile_of(gated(here, *PROFILED, *later)) is None


def test_of_a_kernel_at_its_roof_the_next_thing_is_to_end(here: Path) -> None:
    found = session(here, *made.passed(0.9), made.gate("profile", 5, bottleneck="dram"))
    put(NSIGHT / "dram.ncu-rep", found, "profile/toy.n4.head.ncu-rep")
    assert next_of(found, here)[0] is not None, "how much must be moved is not known"
    moved = analyze.analyze(NSIGHT / "dram.ncu-rep")[0].kernel.figures["dram_bytes"]
    for needed, command in ((0.5 * moved, f"{TRY} --action "), (moved, "kernelgate session close")):
        timed = run_record(
            [case("n4", work=Work(bytes=needed), card="toy"), case("n8", work=Work(bytes=1), card="toy")]
        )
        record.write(timed, found.work / "performance.json")
        assert (next_of(found, here)[1] or "").startswith(command)


def test_a_try_is_logged_with_what_was_recommended_and_what_held_the_kernel_back(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the report of the gate, which stands for the state before the try, not by the try's own."""
    repo = miniature.repository(here / "repo", miniature.SCALE_FILES)
    base = miniature.git(repo, "rev-parse", "HEAD")
    begun = folder.create(repo, made.opened(card="scale", gpu="NVIDIA H200", base=base))
    folder.append(begun.folder, *PROFILED)
    put(NSIGHT / "bank_conflicts.ncu-rep", begun, "profile/toy.n4.head.ncu-rep")
    miniature.write(repo, {"csrc/scale.cpp": miniature.SCALE.replace("factor *", "2 * factor *")})

    def measured(*_: object) -> Watched:
        record.write(run_record([case("n64", card="scale")]), begun.work / "try-1/run.json")
        return Watched(0, "", 1.0)

    monkeypatch.setattr(trying.watching, "run", measured)
    trying.run(folder.read(begun.folder), repo, Policy(), TriedChange(what="w", why="y", action="swizzle"))
    [tried] = [one for one in folder.read(begun.folder).events if isinstance(one, TriedChange)]
    assert (tried.action, tried.recommended, tried.bottleneck) == ("swizzle", True, "bank_conflicts")
    assert tried.files == ("csrc/scale.cpp",)
