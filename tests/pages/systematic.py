"""The table of docs/systematic.md, from the policy: `python -m tests.pages.systematic` writes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kernelgate.ci.judge import policy
from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.sessions import gates

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "systematic.md"
BEGIN, END = "<!-- times: begin -->", "<!-- times: end -->"


def main() -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    made = text(policy.load(ROOT / policy.POLICY_FILE))
    PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{after}", encoding="utf-8")


def text(rules: Policy) -> str:
    return "\n".join(_lines(rules))


def _lines(rules: Policy) -> Iterator[str]:
    times = rules.session
    boxes = {
        "environment": times.environment_minutes,
        "measure": times.measurement_minutes,
        "profile": times.profile_minutes,
        "one change after the other": times.change_minutes,
        "measure again": times.again_minutes,
        "document": times.document_minutes,
    }
    yield from ("| step | minutes | ends at |", "| --- | --: | --: |")
    spent = 0.0
    for name, minutes in boxes.items():
        spent += minutes
        yield f"| {name} | {minutes:g} | {spent:g} |"
    total = gates.minutes("optimise", rules)
    assert spent == total, f"the steps take {spent:g} minutes, a session {total:g}"
    yield ""
    yield f"A session that only measures (`--template baseline`) takes {times.baseline_minutes:g} minutes."
    yield from ("", "| gate | minutes | passed when | else |", "| --- | --: | --- | --- |")
    for gate in gates.of("optimise", rules):
        yield f"| {gate.name} | {gate.minutes:g} | {gate.passes} | {gate.on_failure} |"
    yield ""
    guidance = rules.guidance
    yield (
        f"{times.without_gate_minutes:g} minutes without a passed gate end a session. Below {guidance.profile_below:g} "
        f"times the reference a profile is made before any change, below {rules.gates.reference_min:g} times at once. "
        f"Below the reference's speed a change is kept from {guidance.keep_from:g} times as fast as before; from there "
        f"on, any certain gain is."
    )


if __name__ == "__main__":
    main()
