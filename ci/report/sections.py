"""The folded parts of the report: the numbers behind the verdict, the machine, and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kernelgate.bench.record import (
    Build,
    Card,
    CaseKey,
    Device,
    RunRecord,
    Side,
    Telemetry,
    TimedCase,
    TimedProcess,
    rates,
    timed_cases,
)
from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import shell
from kernelgate.ci.document.model import (
    Block,
    Bullets,
    Code,
    Column,
    Line,
    Mark,
    Paragraph,
    Piece,
    Section,
    Table,
    Verbatim,
)
from kernelgate.ci.judge import sentences
from kernelgate.ci.judge.cards import HEAD_ALONE
from kernelgate.ci.judge.case import MeanVerdict, Status
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import how_measured, launches, memory, thresholds, why
from kernelgate.ci.report.correctness import MAX_COMMAND, argument
from kernelgate.ci.report.gpu import JudgedCase


def sections(
    record: RunRecord, cases: Sequence[JudgedCase], policy: Policy, means: Sequence[MeanVerdict] = ()
) -> tuple[Section, ...]:
    """Every folded part that the record has something for, in reading order."""
    parts = (
        statistics(cases, record.cards, means),
        speed(record, cases, policy.guidance.launch_share),
        memory.section(record, cases, policy.gates),
        conditions(record, cases),
        machine(record),
        why.section(record, cases, thresholds.bottleneck_limits(policy)),
        why.static_section(record, policy.static),
        commands(record, cases),
    )
    return tuple(part for part in parts if part is not None)


def statistics(
    cases: Sequence[JudgedCase], cards: Sequence[Card] = (), means: Sequence[MeanVerdict] = ()
) -> Section | None:
    """The numbers that each verdict rests on."""
    cases = [one for one in cases if one.status is not Status.ALONE]
    if not cases:
        return None
    columns = (
        Column("case"),
        Column("change", numeric=True),
        Column("interval", numeric=True),
        Column("p, adjusted", numeric=True),
        Column("Cliff's delta", numeric=True),
        Column("could be seen", numeric=True),
        Column("Mann–Whitney p", numeric=True),
        Column("bootstrap 95%", numeric=True),
        Column("rounds in processes", numeric=True),
    )
    note = (
        "Changes are of time, head against base: positive is slower. p is adjusted over the cases of this record. "
        "“Could be seen” is the smallest change that this run could have shown. Mann–Whitney p and the bootstrap "
        "interval are for comparison and decide nothing alone; ",
        Code("docs/statistics.md"),
        " has the model.",
    )
    titles = formatting.titles_of((mean.card for mean in means), cards)
    lines = (
        *((_together(mean, titles), mean.sentence, ".") for mean in means),
        *((one.name, ": ", formatting.sentence(one.case.sentence), ".") for one in cases if _is_news(one)),
    )
    blocks: list[Block] = [Bullets(lines)] if lines else []
    ids = formatting.ids((one.case.key for one in cases), cards)
    rows = tuple(_statistics_row(one, ids[one.case.key]) for one in cases)
    return Section("Statistics", (*blocks, Table(columns, rows), Paragraph(note)), worth=60)


def _together(mean: MeanVerdict, titles: Mapping[str, str]) -> str:
    return f"All cases of {titles[mean.card]} together: " if mean.card in titles else "All cases together: "


def _is_news(one: JudgedCase) -> bool:
    return one.status is not Status.UNCHANGED and bool(one.case.sentence)


def _statistics_row(one: JudgedCase, id_: Code) -> tuple[Line, ...]:
    case = one.case
    change, interval = formatting.signed(case.change_pct, case.interval_pct)
    seen, believed = case.minimum_detectable_pct if not case.disqualifying else None, not case.disqualifying
    return (
        (id_,),
        (change if believed else formatting.MISSING,),
        (interval if believed and case.interval_pct else formatting.MISSING,),
        (formatting.probability(case.p if believed else None),),
        (
            formatting.MISSING
            if case.cliffs_delta is None or not believed
            else formatting.percent(case.cliffs_delta, 2, sign=True)[:-1],
        ),
        (formatting.MISSING if seen is None else sentences.in_statistics(seen),),
        (formatting.probability(case.mann_whitney_p if believed else None),),
        (formatting.signed(0.0, case.bootstrap_pct)[1] if believed and case.bootstrap_pct else formatting.MISSING,),
        (f"{case.rounds} in {case.processes}",),
    )


def speed(record: RunRecord, cases: Sequence[JudgedCase], launch_share: float) -> Section | None:
    """Percentiles over every round, throughput from the case's own work, and the kernel apart from its process.

    `launch_share`: of a call; where its launch takes more, that is spelled out.
    """
    by_key = {case.key: case for case in timed_cases(record)}
    timed = [(one.name, by_key[one.case.key]) for one in cases if one.case.key in by_key]
    beside = formatting.reference(record.cards)
    rows = tuple(row for name, case in timed for side in rates.SIDES if (row := _speed_row(name, case, side)))
    if not rows:
        return None
    columns = (
        Column("case"),
        Column("side"),
        *(
            Column(title, numeric=True)
            for title in ("P50", "P95", "P99", f"× {beside}", "TFLOP/s", "GB/s", "kernel", "launch overhead")
        ),
    )
    note: Line = (
        f"Time of one call over all rounds of all processes. “× {beside}” is the reference's median divided by the "
        "kernel's: above 1 the kernel is the faster one. “Kernel” is "
        "the same call replayed from a CUDA graph; “launch overhead” is what P50 holds beyond it.",
    )
    blocks = (Table(columns, rows), *launches.blocks(record, cases, launch_share), Paragraph(note))
    return Section("Speed: percentiles, throughput, launch overhead", blocks, worth=40)


def _speed_row(name: Piece, case: TimedCase, side: Side) -> tuple[Line, ...] | None:
    rate = rates.rate(case, side)
    if rate is None:
        return None
    cells = (
        *formatting.durations(rate.p50_us, rate.p95_us, rate.p99_us),
        _against_reference(case, side, rate.p50_us),
        *(formatting.MISSING if one is None else formatting.significant(one, 3) for one in (rate.tflops, rate.gbps)),
        *formatting.durations(rate.graph_us),
        *formatting.durations(rate.overhead_us),
    )
    return ((name,), (side,), *((cell,) for cell in cells))


def _against_reference(case: TimedCase, side: Side, p50_us: float) -> str:
    reference = rates.rate(case, "reference")
    if side == "reference" or reference is None or not p50_us:
        return formatting.MISSING
    return f"{reference.p50_us / p50_us:.2f}"


def conditions(record: RunRecord, cases: Sequence[JudgedCase]) -> Section | None:
    """What the device did during each process, what looked odd, and what the producer of the record notes."""
    warnings = tuple(
        (
            Mark.SLIGHT if not finding.disqualifies else Mark.UNKNOWN,
            " ",
            one.name,
            ": ",
            formatting.sentence(finding.message),
            ".",
        )
        for one in cases
        for finding in one.case.findings
        if finding.code != HEAD_ALONE
    )
    names = formatting.names(record.cases, record.cards)
    rows = tuple(
        _telemetry_row(names[case.key], number, process)
        for case in timed_cases(record)
        for number, process in enumerate(case.processes, start=1)
    )
    blocks: list[Block] = [Bullets(warnings)] if warnings else []
    notes = how_measured.lines(record)
    if notes:
        blocks += [Paragraph(("How it was measured:",)), Bullets(notes)]
    if any(_was_read(process.telemetry) for case in timed_cases(record) for process in case.processes):
        columns = (Column("case"), Column("process", numeric=True), Column("role"), *_TELEMETRY)
        blocks.append(Table(columns, rows))
    elif rows:
        blocks.append(Paragraph((f"Clocks, temperature and power: {formatting.NOT_MEASURED}.",)))
    title = ["Clocks", "temperature"]
    title += ["notes"] if notes else []
    title += [f"warnings ({len(warnings)})"] if warnings else []
    return Section(", ".join(title), tuple(blocks), worth=30) if blocks else None


_TELEMETRY = (
    Column("SM clock", numeric=True),
    Column("memory clock", numeric=True),
    Column("hottest", numeric=True),
    Column("power", numeric=True),
    Column("throttled by"),
)


def _telemetry_row(name: Piece, number: int, process: TimedProcess) -> tuple[Line, ...]:
    seen = process.telemetry or Telemetry()
    throttled = ", ".join(seen.throttle_reasons) or ("nothing" if _was_read(seen) else formatting.MISSING)
    return (
        (name,),
        (str(number),),
        (process.role,),
        (_with_unit(seen.sm_mhz, "MHz"),),
        (_with_unit(seen.memory_mhz, "MHz"),),
        (_with_unit(seen.temperature_c, "°C"),),
        (_with_unit(seen.power_w, "W"),),
        (throttled,),
    )


def _was_read(telemetry: Telemetry | None) -> bool:
    """Whether a device said anything: a CPU has telemetry without readings."""
    return telemetry is not None and telemetry != Telemetry()


def machine(record: RunRecord) -> Section | None:
    """The device and the software, one fact a row, and how each side was built."""
    environment, device = record.environment, record.environment.device
    facts: tuple[tuple[str, Line], ...] = (
        *_device_facts(device),
        ("torch", _named(environment.torch)),
        ("CUDA", _named(environment.cuda)),
        ("numerics", _named(environment.numerics.words if environment.numerics else None)),
        ("Python", _named(environment.python)),
        ("system", _named(environment.os)),
        ("host", _named(environment.host)),
        ("measured at", _named(record.run.created_at)),
        ("run", _named(_run(record))),
    )
    rows = tuple(((what,), value) for what, value in facts if value)
    blocks: list[Block] = [Table((Column("what"), Column("value")), rows)] if rows else []
    if record.builds:
        titles = formatting.titles_of((build.card for build in record.builds), record.cards)
        blocks.append(_builds(record.builds, titles))
    return Section("Machine and build", tuple(blocks), worth=50) if blocks else None


def _device_facts(device: Device) -> tuple[tuple[str, Line], ...]:
    cores, cache = ("cores", "last-level cache") if formatting.on_cpu(device) else ("multiprocessors", "L2 cache")
    return (
        ("device", _named(device.name)),
        ("compute capability", _named(device.compute_capability)),
        (cores, () if device.sm_count is None else (str(device.sm_count),)),
        ("memory", () if device.memory_bytes is None else (formatting.sizes(device.memory_bytes),)),
        (cache, () if device.l2_bytes is None else (formatting.sizes(device.l2_bytes),)),
        ("driver", _named(device.driver)),
        ("UUID", _named(device.uuid)),
    )


def _run(record: RunRecord) -> str | None:
    run, attempt = record.run.run_id, record.run.run_attempt
    return None if run is None else f"{run}, attempt {attempt}" if attempt is not None else str(run)


def _builds(builds: Iterable[Build], titles: Mapping[str, str]) -> Table:
    """`titles`: of the cards, where there are several."""
    columns = (
        *((Column("kernel"),) if titles else ()),
        Column("side"),
        Column("commit"),
        Column("targets"),
        Column("compiled in", numeric=True),
        Column("library sha256"),
    )
    rows = tuple(
        (
            *(((titles[build.card],),) if titles else ()),
            (build.side,),
            (formatting.commit(build.sha, "working tree"),),
            _named(", ".join(build.targets)) or (formatting.MISSING,),
            ("from the cache" if build.cached else _with_unit(build.seconds, "s"),),
            _named(build.library_sha256[:12] if build.library_sha256 else None) or (formatting.MISSING,),
        )
        for build in builds
    )
    return Table(columns, rows)


def commands(record: RunRecord, cases: Sequence[JudgedCase]) -> Section:
    """How to see the same on one's own machine; the case is the worst one."""
    base = record.run.base_sha
    known = [base[:12]] if base and formatting.is_commit(base) else []
    if record.profile and not record.cases:
        return Section("Run it yourself", (Verbatim((profile_command(record, record.profile[0].key),)),), worth=80)
    lines: list[str] = []
    if record.cases:
        bench = ["kernelgate", "bench", *(word for sha in known for word in ("--base", sha))]
        worst = argument(record, cases[0].case.card, cases[0].case.id) if cases else ""
        lines += [f"{_on_case(bench, worst)} -o run.json"]
        lines += [shell("kernelgate", "compare", "run.json")]
    if record.fuzz and record.fuzz.seed is not None:
        lines.append(shell("kernelgate", "fuzz", "--seed", str(record.fuzz.seed)))
    lines.append(shell("kernelgate", "pr", *(word for sha in known for word in ("--base", sha))))
    return Section("Run it yourself", (Verbatim(tuple(lines)),), worth=80)


def profile_command(record: RunRecord, key: CaseKey, *more: str) -> str:
    """Profiles one case on both sides again."""
    base = record.run.base_sha
    alone = all(one.side == "head" for one in record.profile)
    sides = ["--base", base[:12]] if base and formatting.is_commit(base) else ["--alone"] if alone else []
    return _on_case(["kernelgate", "profile", *more, *sides], argument(record, key.card, key.id))


def _on_case(words_: Sequence[str], case: str) -> str:
    """The command for one case; for all of them where its id is too long to be read."""
    one = shell(*words_, "--case", case) if case else ""
    return one if 0 < len(one) <= MAX_COMMAND else shell(*words_)


def _named(text: str | None) -> Line:
    return (Code(text),) if text else ()


def _with_unit(value: float | None, unit: str) -> str:
    return formatting.MISSING if value is None else f"{formatting.significant(value, 3 if value < 1000 else 4)} {unit}"
