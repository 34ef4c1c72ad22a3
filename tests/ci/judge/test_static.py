from __future__ import annotations

import json

from kernelgate.bench.record import Resources, Side
from kernelgate.ci.judge import static
from kernelgate.ci.judge.policy import Static, parse


def one(side: Side, registers: int, spill: int = 0, occupancy: float = 25.0, kernel: str = "attention") -> Resources:
    return Resources(
        side=side,
        target="sm_89",
        kernel=kernel,
        registers=registers,
        spill_bytes=spill,
        occupancy_pct={"L4": occupancy},
        occupancy_limits={"L4": "registers"},
        instructions={"total": 100, "STL": spill // 4},
    )


def test_new_spills_fail_and_lost_occupancy_warns() -> None:
    found = static.judge([one("base", 128), one("head", 200, spill=64, occupancy=16.7)], Static())
    assert [(finding.code, finding.severity) for finding in found] == [
        ("new_spills", "fail"),
        ("occupancy_loss", "warn"),
    ]
    assert found[0].message == "64 bytes of registers are spilled to local memory, where it was 0"
    assert found[1].message == "occupancy on the L4 falls from 25% to 16.7%, limited by registers"
    assert static.exit_code(found) == 1


def test_what_was_there_before_is_not_new() -> None:
    assert static.judge([one("base", 128, spill=64), one("head", 128, spill=64)], Static()) == ()
    assert static.judge([one("base", 128, spill=64), one("head", 128, spill=32)], Static()) == ()


def test_a_kernel_without_base_may_not_spill_either() -> None:
    assert static.exit_code(static.judge([one("head", 128, spill=4)], Static())) == 1
    assert static.judge([one("head", 128)], Static()) == ()


def test_a_loss_alone_does_not_block() -> None:
    found = static.judge([one("base", 128), one("head", 200, occupancy=12.5)], Static())
    assert static.exit_code(found) == 0


def test_the_policy_decides() -> None:
    policy = parse('[static]\nnew_spills = "ignore"\noccupancy_loss = "fail"').static
    found = static.judge([one("base", 128), one("head", 200, spill=64, occupancy=16.7)], policy)
    assert [(finding.code, finding.severity) for finding in found] == [("occupancy_loss", "fail")]


def test_text_shows_what_changed() -> None:
    text = static.to_text([one("base", 128), one("head", 200, spill=64, occupancy=16.7)])
    assert text.splitlines() == [
        "attention for sm_89",
        "  registers a thread: 128 → 200",
        "  spilled bytes: 0 → 64",
        "  occupancy on the L4: 25 → 16.7%, limited by registers",
        "  instructions: total 100, STL 0 → 16",
    ]
    assert static.to_text([]) == "no device code"


def test_json_holds_resources_and_findings() -> None:
    listed = [one("base", 128), one("head", 128, spill=8)]
    content = json.loads(static.to_json(listed, static.judge(listed, Static())))
    assert [entry["side"] for entry in content["resources"]] == ["base", "head"]
    assert content["findings"][0]["code"] == "new_spills"
