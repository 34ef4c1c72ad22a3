"""The patterns: each reads, names checks that exist and a command that runs; and each check."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from kernelgate.bench import record
from kernelgate.bench.record import Build, Check, FuzzResult, KernelFacts, Timing
from kernelgate.ci.commands import cli
from kernelgate.ci.lab import folder, log, patterns
from kernelgate.ci.lab.log import Closed, Decided, Event, GateAttempt, GateName, Opened, TriedChange, TryOutcome
from kernelgate.ci.lab.patterns import SIGNALS, DoctorFinding, Seen
from tests.called import EndsWith

PATTERNS = patterns.read_all(patterns.SHIPPED)


def test_all_eighteen_are_there_and_each_check_belongs_to_one() -> None:
    assert len({one.name for one in PATTERNS}) == 18
    assert sorted(signal for one in PATTERNS for signal in one.signals) == sorted(SIGNALS)
    assert all(one.signals for one in PATTERNS)


def test_their_commands_are_commands() -> None:
    for one in PATTERNS:
        tool, verb, *given = one.command.split()
        command = cli.cli.get_command(click.Context(cli.cli), verb)
        assert tool == "kernelgate"
        assert command is not None, one.command
        command.make_context(verb, given)


WHOLE = "## mine\n\n- When: now\n- Do: look\n- Run: `kernelgate doctor`\n- Check: `blind_tries`\n- Evidence: seen\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WHOLE.replace("- Run: `kernelgate doctor`\n", ""), r"patterns\.md: pattern mine has no line `- Run: …`"),
        (WHOLE.replace("blind_tries", "telepathy"), "no signal is called 'telepathy'; there are"),
    ],
)
def test_a_section_that_lacks_something_is_named_and_left_out(
    tmp_path: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "patterns.md"
    file.write_text(f"{text}\n{WHOLE.replace('mine', 'other')}", encoding="utf-8")
    assert [one.name for one in patterns.read_all(file)] == ["other"]
    assert re.search(said, capsys.readouterr().err.replace("\n", " "))


def test_a_checkouts_own_patterns_take_the_place_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ends_with(0, "patterns", "--all").out.count("  run:  ") == len(PATTERNS)
    (tmp_path / patterns.FILE).parent.mkdir()
    (tmp_path / patterns.FILE).write_text(WHOLE, encoding="utf-8")
    assert ends_with(0, "patterns", "--all").out == "mine\n  when: now\n  do:   look\n  run:  kernelgate doctor\n"


def test_the_verb_says_why_and_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    place = tmp_path / folder.FOLDER / "mine"
    place.mkdir(parents=True)
    (place / log.FILE).write_text(log.line(log.Opened(name="mine", objective="faster")), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    told = "environment-validated\n  now:  the session's environment was not looked at yet\n"
    assert ends_with(0, "patterns").out.startswith(told)
    assert json.loads(ends_with(0, "patterns", "--json").out)["looked_at"] == ["session mine"]
    (tmp_path / "doctor.json").write_text(json.dumps({"fit": True, "checks": []}), encoding="utf-8")
    said = ends_with(64, "patterns", "--session", "none", "--doctor", "doctor.json").err
    assert "there is no session 'none' in .ci/sessions/; there are: mine" in said
    ends_with(64, "patterns", "--session", "../x")


OPENED = Opened(name="s", objective="faster")
RECORD = record.read(Path(__file__).parents[2] / "data/cards/swiglu_slower.json")


def gate(name: GateName, passed: bool, said: str = "seen", minutes: float = 1.0, **figures: float) -> GateAttempt:
    return GateAttempt(gate=name, passed=passed, said=said, seconds=60 * minutes, figures=figures)


def tried(number: int = 1, interval: tuple[float, float] = (-6.0, -4.0), **fields: object) -> TriedChange:
    change = sum(interval) / 2
    outcome = TryOutcome(
        case="c", status="faster", change_pct=change, interval_pct=interval, error_pct=0.3, processes=4
    )
    values = {"number": number, "what": "w", "why": "y", "said": "s", "bottleneck": "DRAM", "outcomes": (outcome,)}
    return TriedChange.model_validate({**values, **fields})


def session(*events: Event) -> Seen:
    begun = [one for one in events if isinstance(one, Opened)] or [OPENED]
    return Seen(events=(*begun, *(one for one in events if not isinstance(one, Opened))))


def found(name: str, level: str, said: str) -> Seen:
    return Seen(findings=(DoctorFinding(name, level == "failed", said),))


def of_record(**fields: object) -> Seen:
    return Seen(record=RECORD.model_copy(update=fields))


def timed(change: Callable[[Timing], dict[str, object]], **fields: object) -> Seen:
    """The record, with something of each process's times changed."""
    processes = [
        one.model_copy(update={"timings": tuple(timing.model_copy(update=change(timing)) for timing in one.timings)})
        for one in RECORD.processes
    ]
    return of_record(processes=tuple(processes), **fields)


def proven(seen: Seen, **times: dict[str, float]) -> Seen:
    """With times, in place of what the judge makes of the record."""
    vars(seen).update(times)
    return seen


def without_reference() -> Seen:
    return timed(lambda one: {"samples_us": {side: us for side, us in one.samples_us.items() if side != "reference"}})


VALID, BUILT, RIGHT = (gate(name, True) for name in ("environment", "build", "correctness"))
TIMED = gate("performance", True, reference_ms=1.0, ours_ms=0.8)
SLOW = gate("performance", False, speedup=0.1)
NEAR = gate("performance", False, speedup=0.9)
WRONG = (FuzzResult(id="S=65", seed=1, axes={}, passed=False), FuzzResult(id="S=4", seed=1, axes={}, passed=True))
FUZZ_FAILED = Check(kind="fuzz", card="swiglu", status="failed", run=2, failed=1, results=WRONG)
ON_CPU = OPENED.model_copy(update={"gpu": "cpu"})
KEEP, REVERT = (Decided(number=1, kept=kept, why="so") for kept in (True, False))
MUCH = (-31.0, -29.0)
BLIND = tried(bottleneck=None)
TOO_LARGE = tried(failed="build", said="uses too much shared data", outcomes=())
WRONG_TRY = tried(failed="correctness")


def over(name: GateName, why: str) -> GateAttempt:
    return GateAttempt(gate=name, passed=True, said=f"skipped: {why}", skipped=why)


def but(event: GateAttempt, **fields: object) -> GateAttempt:
    return event.model_copy(update=fields)


def failing(said: str = "", **fields: object) -> GateAttempt:
    return but(gate("build", False, said), **fields)


def fitting(share: float) -> Seen:
    """A head whose kernel has this occupancy."""
    gpu = "H100 and H200"
    limits = {gpu: "shared memory"}
    facts = KernelFacts(target="sm_90a", name="kernel", occupancy_pct={gpu: share}, occupancy_limits=limits)
    return of_record(builds=(Build(card="swiglu", side="head", targets=("sm_90a",), kernels=(facts,)),))


def built_for(*targets: str) -> Seen:
    return of_record(builds=(Build(card="swiglu", side="head", targets=targets),))


def ended(why: str) -> Seen:
    return of_record(run=RECORD.run.model_copy(update={"ended": why}))


UNPROFILED = over("profile", "no ncu")
ON_A, ON_B, LONG_ON_B = but(VALID, machine="a"), but(VALID, machine="b"), but(VALID, machine="b", seconds=180.0)
READY, MIXED = (VALID, BUILT, RIGHT), failing("cannot convert c10::Half to half")
LATE, EARLY = failing(at="2026-11-22T12:33:00Z"), failing(at="2026-11-22T12:02:00Z")
CASES: dict[str, list[tuple[Seen, Seen, str]]] = {
    "reference_unmeasured": [
        (session(*READY), session(*READY, TIMED), "not measured yet"),
        (without_reference(), Seen(record=RECORD), "no reference"),
    ],
    "slow_without_profile": [
        (session(SLOW), session(SLOW, gate("profile", True)), "0.1× the reference"),
        (
            proven(of_record(profile=()), speedups={"swiglu/c": 0.4, "swiglu/d": 2.0}),
            proven(Seen(record=RECORD), speedups={"swiglu/c": 0.4}),
            "swiglu/c runs at 0.4×",
        ),
        (session(NEAR, BLIND), session(NEAR, tried()), "0.9×"),
    ],
    "blind_tries": [
        (session(BLIND), session(tried()), "try 1 without"),
        (session(BLIND), session(UNPROFILED, BLIND), "try 1 without"),
    ],
    "below_reference": [
        (session(NEAR), session(SLOW), "0.9×"),
        (session(NEAR), session(NEAR, tried(interval=MUCH), KEEP), "0.9×"),
    ],
    "launch_heavy": [(proven(Seen(), launch_shares={"c": 0.6}), proven(Seen(), launch_shares={"c": 0.2}), "60% of a")],
    "wrong_results": [
        (of_record(checks=(FUZZ_FAILED,)), Seen(record=RECORD), "1 of 2 fuzz cases failed; .* S=65"),
        (session(gate("correctness", False, "4.72 off")), session(RIGHT), "4.72 off"),
        (session(WRONG_TRY), session(WRONG_TRY, REVERT), "try 1"),
    ],
    "timed_unchecked": [(timed(lambda _: {"errors": {}}, checks=()), of_record(checks=()), "neither fuzz")],
    "several_variables": [
        # code belongs to the one thing that is varied
        (session(tried(variables=("tile", "threads"))), session(tried(variables=("tile", "code"))), "tile, threads")
    ],
    "kept_uncertain": [(session(tried(interval=(-3.0, 1.0)), KEEP), session(tried(), KEEP), "try 1 kept")],
    "environment_unchecked": [
        (session(), session(VALID), "not looked at yet"),
        (found("torch", "failed", "absent"), found("load", "warning", "2 of 2 cores"), "torch: abs"),
    ],
    "environment_skipped": [
        (session(BUILT, VALID), session(VALID, BUILT), "work began before"),
        (session(ON_A, tried(machine="b")), session(ON_A, ON_B, tried(machine="b")), "try 1 was on another machine"),
    ],
    "cold_starts": [
        (
            session(ON_A, LONG_ON_B, but(BUILT, machine="b")),
            session(ON_A, ON_A, VALID, but(BUILT, machine="a")),
            "between the gate environment and the gate environment",
        )
    ],
    "build_keeps_failing": [
        (session(EARLY, LATE), session(EARLY, BUILT, LATE), "failed for 32 min"),  # each attempt takes a minute
    ],
    "symbol_undefined": [
        (
            session(failing("undefined reference to `void f<float>(int)'")),
            session(gate("environment", False, "torch: undefined symbol: _ZN3c101fIfEEv"), BUILT),
            "f<float>",
        )
    ],
    "types_mixed": [
        (session(MIXED), session(MIXED, BUILT), "c10::Half"),
        (session(MIXED), session(failing("expected a ;")), "c10::Half"),
    ],
    "resources_exceeded": [
        (session(TOO_LARGE), session(TOO_LARGE, tried(number=2)), "too much shared data"),
        (fitting(0.0), fitting(50.0), "no block of kernel fits .* H100 and H200, by shared memory"),
    ],
    "machine_lost": [
        (session(Closed(why="machine", said="preempted")), session(Closed(why="done", said="preempted")), "preempted"),
        (ended("preempted"), ended("failed"), "preempted"),
    ],
    "silent_work": [
        (session(tried(silent_s=120.0)), session(tried(silent_s=119.0)), "try 1 printed nothing"),
    ],
    "foreign_target": [(built_for("sm_89"), built_for("sm_89", "sm_90a"), "compiled for sm_89, measured on sm_90")],
}


@pytest.mark.parametrize("name", SIGNALS)
def test_a_check_fires_on_its_cases_and_on_no_twin(name: str) -> None:
    for fires, silent, said in CASES[name]:
        assert re.search(said, SIGNALS[name](fires) or ""), said
        assert SIGNALS[name](silent) is None, said


def test_nothing_fires_where_nothing_was_looked_at_or_all_is_well() -> None:
    profiled = gate("profile", True)
    kept = Decided(number=1, kept=True, why="certain")
    well = session(VALID, BUILT, RIGHT, TIMED, profiled, tried(), kept, Closed(why="done", said="done"))
    for looked in (Seen(), well, Seen(record=RECORD)):
        assert {name: check(looked) for name, check in SIGNALS.items() if check(looked)} == {}
