"""Where and how a record was measured, folded, and the commands that repeat it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from kernelgate.bench.record import CaseKey, Note, RunRecord, Telemetry, timed_cases
from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import shell, visible
from kernelgate.ci.document.model import Block, Bullets, Code, Line, Mark, Paragraph, Piece, Section, Verbatim, table
from kernelgate.ci.judge import cards
from kernelgate.ci.judge.witness import VERIFIED_IN_PROCESS
from kernelgate.ci.policy.policy import Costs, GpuPrice
from kernelgate.ci.report import remarks
from kernelgate.ci.report.correctness import titles
from kernelgate.ci.report.gpu import JudgedCase
from kernelgate.ci.report.links import base_option, on_cases, same_here, whole_again

# The device, and what was not as usual --------------------------------------------------------------------------------

TELEMETRY = ("case", "#process", "role", "#SM clock", "#memory clock", "#hottest", "#power", "throttled by")
NOTHING_READ = Telemetry()
"""Of a CPU."""


def conditions(record: RunRecord, cases: Sequence[JudgedCase]) -> Section | None:
    """What the device did during each process, what looked odd, and what the producer of the record notes."""
    marks = {True: Mark.UNKNOWN, False: Mark.SLIGHT}
    warnings = tuple(
        (marks[finding.disqualifies], " ", one.name, ": ", formatting.sentence(finding.message), ".")
        for one in cases
        for finding in one.case.findings
        if finding.code != cards.HEAD_ALONE
    )
    names = formatting.names(record.cases, record.cards)
    read = [
        (names[case.key], number, process.role, process.telemetry or NOTHING_READ)
        for case in timed_cases(record)
        for number, process in enumerate(case.processes, start=1)
    ]
    blocks: list[Block] = [Bullets(warnings)] if warnings else []
    title = "Clocks, temperature"
    if notes := how_measured(record):
        blocks += [Paragraph(("How it was measured:",)), Bullets(notes)]
        title += ", notes"
    if any(seen != NOTHING_READ for *_, seen in read):
        blocks.append(table(TELEMETRY, (_telemetry_row(*one) for one in read)))
    elif read:
        blocks.append(Paragraph((f"Clocks, temperature and power: {formatting.NOT_MEASURED}.",)))
    title += f", warnings ({len(warnings)})" if warnings else ""
    return Section(title, tuple(blocks), worth=30) if blocks else None


def _telemetry_row(name: Piece, number: int, role: str, seen: Telemetry) -> tuple[Piece, ...]:
    throttled = ", ".join(seen.throttle_reasons) or (formatting.MISSING if seen == NOTHING_READ else "nothing")
    units = ((seen.sm_mhz, "MHz"), (seen.memory_mhz, "MHz"), (seen.temperature_c, "°C"), (seen.power_w, "W"))
    return (name, str(number), role, *(_with_unit(*one) for one in units), throttled)


OF_ITS_OWN = Note.model_fields["code"].default
MAX_ALIKE = 3
"""Notes of one code that are listed; of more the first stands for all."""


def how_measured(record: RunRecord) -> tuple[Line, ...]:
    """The notes that nothing else says: of many with one code the first, and how many there are."""
    spoken = remarks.said(record)
    rest = [note for note in record.notes if note not in spoken]
    lines: list[Line] = []
    alike, first = Counter(note.code for note in rest), {note.code: note for note in reversed(rest)}
    for note in rest:
        where = "outputs were compared in the measured process: " if note.code == VERIFIED_IN_PROCESS else ""
        text = f"{where}{note.text}"
        if note.code == OF_ITS_OWN or alike[note.code] <= MAX_ALIKE:
            lines.append((text,))
        elif note is first[note.code]:
            lines.append((f"{text} (and {alike[note.code] - 1} more such notes in the record)",))
    return tuple(lines)


def machine(record: RunRecord, rules: Costs) -> Section | None:
    """The device and the software, one fact a row, what it cost, and how each side was built."""
    environment, device, run = record.environment, record.environment.device, record.run
    on_cpu = formatting.on_cpu(device)
    attempt = f", attempt {run.run_attempt}" if run.run_attempt is not None else ""
    facts: tuple[tuple[str, Line], ...] = (
        ("device", _named(device.name)),
        ("compute capability", _named(device.compute_capability)),
        ("cores" if on_cpu else "multiprocessors", () if device.sm_count is None else (str(device.sm_count),)),
        ("memory", () if device.memory_bytes is None else (formatting.sizes(device.memory_bytes),)),
        ("last-level cache" if on_cpu else "L2 cache",
         () if device.l2_bytes is None else (formatting.sizes(device.l2_bytes),)),
        ("driver", _named(device.driver)),
        ("UUID", _named(device.uuid)),
        ("torch", _named(environment.torch)),
        ("CUDA", _named(environment.cuda)),
        ("numerics", _named(environment.numerics.words if environment.numerics else None)),
        ("Python", _named(environment.python)),
        ("system", _named(environment.os)),
        ("host", _named(environment.host)),
        ("measured at", _named(run.created_at)),
        ("GPU", (cost,) if (cost := spent(record, rules)) else ()),
        ("run", () if run.run_id is None else (Code(f"{run.run_id}{attempt}"),)),
    )  # fmt: skip
    rows = [(what, value) for what, value in facts if value]
    blocks: list[Block] = [table(("what", "value"), rows)] if rows else []
    if record.builds:
        blocks.append(_builds(record))
    return Section("Machine and build", tuple(blocks), worth=50) if blocks else None


def _builds(record: RunRecord) -> Block:
    named = titles(record)
    columns = ("side", "commit", "targets", "#compiled in", "library sha256")
    rows = (
        (
            *((named[build.card],) if named else ()),
            build.side,
            formatting.commit(build.sha, "working tree"),
            _named(", ".join(build.targets)) or formatting.MISSING,
            "from the cache" if build.cached else _with_unit(build.seconds, "s"),
            _named(build.library_sha256[:12] if build.library_sha256 else None) or formatting.MISSING,
        )
        for build in record.builds
    )
    return table(("kernel", *columns) if named else columns, rows)


def _named(text: str | None) -> Line:
    return (Code(text),) if text else ()


def _with_unit(value: float | None, unit: str) -> str:
    return formatting.MISSING if value is None else f"{formatting.significant(value, 3 if value < 1000 else 4)} {unit}"


def commands(record: RunRecord, cases: Sequence[JudgedCase]) -> Section:
    """How to see the same on one's own machine; the case is the worst one."""
    if record.profile and not record.cases:
        return Section("Run it yourself", (Verbatim((profile_command(record, record.profile[0].key),)),), worth=80)
    lines: list[str] = []
    if record.cases and len(record.run.pythons) < 2:
        worst = (cards.called(record, one.case.key) for one in cases[:1])
        lines += [on_cases("bench", record.run, worst, "-o", "run.json"), "kernelgate compare run.json"]
    if record.fuzz and record.fuzz.seed is not None:
        lines.append(shell("kernelgate", "fuzz", "--seed", str(record.fuzz.seed), *same_here(record.run, "--ref")))
    lines.append(whole_again(record.run))
    return Section("Run it yourself", (Verbatim(tuple(lines)),), worth=80)


def profile_command(record: RunRecord, key: CaseKey, *more: str) -> str:
    alone = ("--alone",) if all(one.side == "head" for one in record.profile) else ()
    return on_cases("profile", record.run, [cards.called(record, key)], *more, base=base_option(record.run) or alone)


# How long measurements had the GPU, and what that costs where the policy has a price ----------------------------------

HOUR_S = 3600.0
TIMING = ("calls", "verifying", "witness", "starting", "accuracy")
"""The phases of `kernelgate bench`, which people see as one."""
MOST = 6
"""Phases that are named: a record may name any."""


def spent(record: RunRecord, rules: Costs) -> str:
    """Such as "74 s (fuzz 12, bench 50, profile 12), 0.014 USD at 0.68 USD an hour (…)"; "" of none on a GPU."""
    phases: defaultdict[str, float] = defaultdict(float)
    for cost in record.costs:
        phases["bench" if cost.phase in TIMING else visible(cost.phase, 20)] += cost.gpu_seconds
    total = sum(phases.values())
    if not total or record.environment.device.name is None or formatting.on_cpu(record.environment.device):
        return ""
    named = ", ".join(f"{phase} {seconds:.0f}" for phase, seconds in list(phases.items())[:MOST])
    price = rules.of(record.environment.device.name)
    money = f", {amount(price, total, rules)} at {hourly(price, rules)}" if price else ""
    return f"{total:.0f} s ({named}){money}"


def amount(price: GpuPrice, seconds: float, rules: Costs) -> str:
    return f"{formatting.significant(price.hour * seconds / HOUR_S, 2)} {rules.currency}".rstrip()


def hourly(price: GpuPrice, rules: Costs) -> str:
    return f"{price.hour:g} {rules.currency}".rstrip() + f" an hour ({price.source}, {price.day})"


def prices(rules: Costs) -> tuple[str, ...]:
    """Of each kind of GPU: its price, and when a machine that idles is better stopped."""
    found = []
    for gpu, price in rules.gpu_hour.items():
        stop = f": stop it after {price.idle_minutes:.0f} idle minutes" if price.idle_minutes else ""
        restart = f", since a stop and a start cost {price.restart:g} {rules.currency}".rstrip() if stop else ""
        found.append(f"{gpu}: {hourly(price, rules)}{stop}{restart}")
    return tuple(found)
