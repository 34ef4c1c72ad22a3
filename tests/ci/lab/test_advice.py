"""What is recommended on a profiled kernel, and what is said of tries in all sessions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.ci.commands import cli
from kernelgate.ci.explain.analyze import analyze_kernel
from kernelgate.ci.lab import advice, folder, log
from kernelgate.ci.lab.log import Event, Opened
from kernelgate.ci.report import why
from tests.ci.lab import session_events as made

NSIGHT = Path(__file__).parents[2] / "data" / "nsight"


def write(root: Path, *sessions: tuple[Event, ...]) -> Path:
    for events in sessions:
        assert isinstance(events[0], Opened)
        (root / events[0].name).mkdir(parents=True)
        (root / events[0].name / log.FILE).write_text("".join(map(log.line, events)), encoding="utf-8")
    return root


def swizzled(count: int, change_pct: float = -20.0) -> tuple[tuple[Event, ...], ...]:
    tried = made.tried(1, change_pct, action="swizzle", bottleneck="bank_conflicts", nvidia_gain_pct=30.0)
    return tuple((made.opened(name=f"s{number}"), tried) for number in range(count))


def test_below_five_sessions_nothing_is_said_of_how_often_an_action_helps(tmp_path: Path) -> None:
    [few] = advice.table(write(tmp_path / "few", *swizzled(4))).actions
    [enough] = advice.table(write(tmp_path / "enough", *swizzled(5))).actions

    assert (few.tries, few.sessions, few.helped_words) == (4, 4, "not measured")
    assert (enough.helped_words, enough.gain_words, enough.nvidia_pct) == ("5 of 5", "20.0%", 30.0)


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


@pytest.mark.parametrize(
    ("status", "counts"),
    [("improved", 1), ("faster", 1), ("likely_faster", 0), ("likely_slower", 0), ("undecided", 0)],
)
def test_only_what_is_certainly_faster_helped(tmp_path: Path, status: str, counts: int) -> None:
    tried = made.tried(1, -20, action="swizzle", bottleneck="l2")
    told = tried.model_copy(update={"outcomes": (tried.outcomes[0].model_copy(update={"status": status}),)})
    table = advice.table(write(tmp_path, (made.opened(), told)))
    assert (table.tries, table.helped) == (1, counts)


def test_recommend_says_what_to_do_why_and_what_was_tried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts alone: no gain of one kernel has been shown to be that of another."""
    sessions = str(write(tmp_path, *swizzled(5)))
    assert cli.run(["recommend", str(NSIGHT.parent / "causes/bank-conflicts.json"), "--sessions", sessions]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("  1. swizzle: ")
    tried = [line.strip() for line in lines if "tried" in line]
    assert tried[0] == "tried 5 times in 5 sessions against this bottleneck, helped 5 times"
    assert {*tried[1:]} == {"not tried against this bottleneck yet"}

    report = str(NSIGHT / "bank_conflicts.ncu-rep")
    assert cli.run(["recommend", report, "--sessions", sessions, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    first = answer["recommendations"][0]
    assert (first["tries"], first["sessions"], first["helped"], answer["done"]) == (5, 5, 5, None)
    assert not [name for name in first if "pct" in name]
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
    assert advice.done(advice.profile(NSIGHT / "l2.ncu-rep", None), 1.0) is None


def test_the_logs_that_are_kept_are_read() -> None:
    table = advice.table(Path(__file__).parents[3] / folder.FOLDER)
    assert (table.tries, table.sessions, table.helped) == (133, 26, 49)
    said = "49 of 133 tries in 26 sessions helped: 17 of the 29 that followed a recommendation, 32 of the 104 others."
    assert advice.summary_line(table) == said
