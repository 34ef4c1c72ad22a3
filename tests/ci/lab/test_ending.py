"""How a session ends: what it lost time to, as others before it, is proposed as a pattern."""

from __future__ import annotations

from pathlib import Path

from kernelgate.ci.lab import ending, folder
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import Closed, GateAttempt, Opened, PatternUse
from kernelgate.ci.policy.policy import Policy

FAILED = GateAttempt(at="2026-11-22T10:10:00Z", gate="build", passed=False, seconds=600, said="undefined symbol: norm")


def begun(root: Path, name: str, *events: GateAttempt) -> Session:
    made = folder.create(root, Opened(at="2026-11-22T10:00:00Z", name=name, objective="faster"))
    folder.append(made.folder, *events)
    return folder.read(made.folder)


def closed(session: Session) -> list[PatternUse]:
    ending.close(session, Policy(), "abandoned", "")
    events = folder.read(session.folder).events
    assert isinstance(events[-1], Closed)
    return [one for one in events if isinstance(one, PatternUse)]


def test_what_cost_time_twice_is_proposed_where_it_cost_it_again(tmp_path: Path) -> None:
    begun(tmp_path, "first", FAILED)

    [proposed] = closed(begun(tmp_path, "second", FAILED))

    assert proposed.how == "proposed"
    assert proposed.minutes == 20
    assert "the gate build, failed, cost 20 min, 2 times in 2 sessions" in proposed.said
    assert closed(begun(tmp_path, "third")) == []
    assert proposed.said in (tmp_path / folder.FOLDER / "second" / "report.md").read_text(encoding="utf-8")
