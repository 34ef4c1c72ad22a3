"""The quick reference, docs/quick-reference.md: `python -m tests.pages.quick_reference` writes it.

Commands and what ends them are the cookbook's tables, parts of commands those of the command line, numbers the
policy's: nothing is said twice by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from kernelgate.ci.commands import cli
from kernelgate.ci.policy import constants, policy
from kernelgate.ci.policy.policy import Policy

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "quick-reference.md"
COOKBOOK = ROOT / "docs" / "CUDA_COOKBOOK.md"
LINK = re.compile(r" ?\(\[how\]\([^)]*\)\)|\[([^\]]*)\]\([^)]*\)")

SESSION = """\
make env && . .venv/bin/activate
kernelgate doctor                       # fit to measure? if not, do what it says
kernelgate session new "WHAT I WANT" --case s512_b1_h8_d64_fp32
kernelgate session gate                 # it compiles, is right, and is timed
# change one thing in the kernel, such as
sed -i 's/kBlockK = 64/kBlockK = 128/' csrc/attention/cpu/block.h
kernelgate session try "WHAT I CHANGED" "WHY IT SHOULD HELP"
kernelgate session keep                 # or revert: `try` ends with which
kernelgate session close --learnt "WHAT I SAW"
"""
"""One from a fresh clone on any machine; each line is one that a newcomer can type as it stands."""

THRESHOLDS = {
    "The verdict": {
        "gates.regression_pct": "% slower, and certain: blocks",
        "gates.improvement_pct": "% faster, and certain: improved",
        "gates.mean_regression_pct": "% slower in the mean of all cases: blocks",
        "gates.mean_improvement_pct": "% faster in the mean of all cases: improved",
        "gates.margin_pct": "% either way is still the same",
        "gates.p": "at most, adjusted over all cases",
        "gates.cliffs_delta": "Cliff's delta, at least",
        "gates.reference_min": "× the reference: below it, profile first",
        "gates.memory_max": "× the reference's memory, where that gate is on",
        "gates.memory_increase_pct": "% more memory is said",
        "accuracy.margin_pct": "% larger errors, and certain: less accurate",
    },
    "How often it measures": {
        "processes.minimum": "processes at least, for any verdict",
        "processes.to_block": "before a regression blocks",
        "processes.to_direct": "for a direction, without a history",
        "processes.limit": "at most",
        "processes.minimum_rounds": "rounds, or a process is excluded",
    },
    "What to do next": {
        "guidance.profile_below": "× the reference: below it, profile",
        "guidance.tune_below": "×: below it, one recommendation at a time",
        "guidance.next_bottleneck_from": "×: from here on, profile again",
        "guidance.target": "×: worth publishing",
        "guidance.keep_from": "× as fast as before: kept while exploring",
        "guidance.launch_bound_us": "µs: below it, look at the launch first",
        "guidance.launch_share": "of the call in the launch: the same",
    },
    "A session, minutes": {
        "session.environment_minutes": "environment",
        "session.build_minutes": "build",
        "session.bisect_after_minutes": "of a failing build: bisect it",
        "session.correctness_minutes": "correctness",
        "session.performance_minutes": "performance",
        "session.profile_minutes": "profile",
        "session.measurement_minutes": "measuring, as planned",
        "session.change_minutes": "changes",
        "session.again_minutes": "measuring again",
        "session.document_minutes": "the report",
        "session.baseline_measurement_minutes": "measuring, of a baseline session",
        "session.baseline_document_minutes": "the report of one",
        "session.without_gate_minutes": "without a passed gate: stop",
        "session.report_s": "s: long work reports as often",
        "session.silent_s": "s of silence end a command",
        "session.fuzz_s": "s of fuzzing in a try",
    },
    "A bottleneck is named from": {
        "bottleneck.saturated_pct": "% of its peak: that unit, whatever else",
        "bottleneck.unit_busy_pct": "%: tensor cores, pipes, L1",
        "bottleneck.bandwidth_busy_pct": "%: DRAM, L2",
        "bottleneck.low_occupancy_pct": "% of the warps: below it, occupancy",
        "bottleneck.enough_occupancy_pct": "%: up to it, perhaps occupancy",
        "bottleneck.idle_share": "of the time without work: grid or tail",
        "bottleneck.conflict_share": "of the wavefronts: bank conflicts",
        "bottleneck.excess_share": "of the sectors: uncoalesced",
        "bottleneck.local_share": "of the instructions: spills",
        "bottleneck.barrier_share": "of the waiting: barriers",
        "bottleneck.diverged_threads": "threads of 32: below it, divergence",
    },
}
"""What each number of the policy means, behind that number."""


def main() -> None:
    PAGE.write_text(text(policy.load(ROOT / policy.POLICY_FILE)), encoding="utf-8")


def text(rules: Policy) -> str:
    return "\n".join(_lines(rules)) + "\n"


def _lines(rules: Policy) -> Iterator[str]:
    yield from ('<div class="one-page" markdown>', "", "# Quick reference", "")
    yield (
        "Made from the [cookbook's table](CUDA_COOKBOOK.md#quick-reference), the command line and "
        "[the policy](../.ci/kernelgate.toml) by `python -m tests.pages.quick_reference`; one page when printed. "
        "`kernelgate VERB --help` has the options."
    )
    yield from ("", "**A session**, in a clone. One case keeps a try short: `kernelgate cards --list`. Keep or revert,")
    yield "then change the next thing; `kernelgate session next` says what is next. [With three tries](onboarding.md)."
    yield from ("", "```sh", *SESSION.splitlines(), "```")
    yield from ("", "| command | does | exit codes |", "| --- | --- | --- |")
    commands, endings = _tables()
    yield from (f"| {' | '.join(_cells(row))} |" for row in commands)
    yield from ("", "| any command | ends with it because |", "| --: | --- |")
    yield from (f"| {' | '.join(_cells(row))} |" for row in endings)
    yield from ("", '<div class="columns" markdown>')
    for title, rows in THRESHOLDS.items():
        yield from ("", '<div class="thresholds" markdown>', "", f"| | {title} |", "| --: | --- |")
        yield from (f"| {value(rules, key):g} | {meaning} |" for key, meaning in rows.items())
        yield from ("", "</div>")
    yield from ("", "</div>", "", "</div>")


def value(rules: Policy, key: str) -> float:
    section, name = key.split(".")
    known = getattr(getattr(rules, section, None), name, None)
    return float(constants.of_key(key)[0].value if known is None else known)


def parts(verb: str) -> tuple[str, ...]:
    """The parts of a command that has some, such as `session`."""
    found = cli.cli.get_command(click.Context(cli.cli), verb)
    return tuple(found.commands) if isinstance(found, click.Group) else ()


def _tables() -> tuple[list[str], list[str]]:
    """The cookbook's rows: those of commands, and what ends any of them."""
    section = COOKBOOK.read_text(encoding="utf-8").split("## Quick reference")[1].split("\n## ")[0]
    rows = re.findall(r"^\| .*\|$", section, re.MULTILINE)
    return [row for row in rows if row.startswith("| `")], [row for row in rows if re.match(r"\| \d", row)]


def _cells(row: str) -> Iterator[str]:
    first, *others = (LINK.sub(lambda found: found[1] or "", cell) for cell in row.strip("| ").split(" | "))
    named = re.fullmatch(r"`kernelgate (\w+)`", first)
    listed = parts(named[1]) if named else ()
    missing = [one for one in listed if not any(f"`{one}`" in cell for cell in others)]
    yield first
    yield others[0] + (f", {', '.join(f'`{one}`' for one in missing)}" if missing else "")
    yield from others[1:]


if __name__ == "__main__":
    main()
