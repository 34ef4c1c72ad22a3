"""The tables of docs/systematic.md: what is planned, from the policy, and what one session took, from its log.

`python -m tests.pages.systematic` writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelgate.ci.explain import next_step
from kernelgate.ci.lab import folder, state
from kernelgate.ci.lab.log import Event, GateAttempt, Opened, TriedChange, duration
from kernelgate.ci.policy import policy
from kernelgate.ci.policy.policy import Policy

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "systematic.md"
TOLD = ROOT / folder.FOLDER / "rmsnorm-memory-speed"
"""The session of docs/loop.md."""
BEGIN, END = "<!-- times: begin -->", "<!-- times: end -->"


def main() -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    made = text(policy.load(ROOT / policy.POLICY_FILE), folder.read(TOLD).events)
    PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{after}", encoding="utf-8")


def text(rules: Policy, told: Sequence[Event]) -> str:
    """`told`: the events of a session that was measured."""
    return "\n".join(_lines(rules, told))


def _lines(rules: Policy, told: Sequence[Event]) -> Iterator[str]:
    boxes = {
        "environment": state.ENVIRONMENT_MINUTES,
        "measure": state.MEASUREMENT_MINUTES,
        "profile": state.PROFILE_MINUTES,
        "one change after the other": state.CHANGE_MINUTES,
        "measure again": state.AGAIN_MINUTES,
        "document": state.DOCUMENT_MINUTES,
    }
    took = _took(told)
    yield from ("| step | minutes, planned | ends at | measured once |", "| --- | --: | --: | --: |")
    spent = 0.0
    for name, minutes in boxes.items():
        spent += minutes
        yield f"| {name} | {minutes:g} | {spent:g} | {duration(took[name]) if name in took else '–'} |"
    total = state.OPTIMISE_MINUTES
    assert spent == total, f"the steps take {spent:g} minutes, a session {total:g}"
    yield ""
    yield f"A session that only measures (`--template baseline`) takes {state.BASELINE_MINUTES:g} minutes."
    yield from ("", "| gate | minutes | passed when | else |", "| --- | --: | --- | --- |")
    for gate in state.gate_states((Opened(name="", objective=""),)):
        yield f"| {gate.name} | {gate.limit_minutes:g} | {gate.passes} | {gate.on_failure} |"
    yield ""
    yield (
        f"{state.WITHOUT_GATE_MINUTES:g} minutes without a passed gate end a session. "
        f"Below {next_step.PROFILE_BELOW:g} times the reference a profile is made before any change, below "
        f"{rules.gates.reference_min:g} times at once. Below the reference's speed a change is kept from "
        f"{next_step.KEEP_FROM:g} times as fast as before; from there on, any certain gain is."
    )


def _took(told: Sequence[Event]) -> dict[str, float]:
    """Minutes of each step that was gone through."""
    steps = {"environment": "environment", "profile": "profile"}
    steps |= dict.fromkeys(("build", "correctness", "performance"), "measure")
    took: dict[str, float] = {}
    for event in told:
        if isinstance(event, GateAttempt | TriedChange):
            step = steps[event.gate] if isinstance(event, GateAttempt) else "one change after the other"
            took[step] = took.get(step, 0.0) + (event.seconds or 0.0) / 60
    return took


if __name__ == "__main__":
    main()
