"""The verbs that learn from what sessions tried. They need no GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from kernelgate.bench.errors import UsageError

if TYPE_CHECKING:
    from kernelgate.ci.explain.analyze import Analysis
    from kernelgate.ci.judge.policy import Policy

SESSIONS = click.option(
    "--sessions", type=click.Path(path_type=Path), help="The folder of the sessions' logs. Default: .ci/sessions."
)
POLICY = click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")


@click.command()
@click.argument("source", metavar="REPORT_OR_RECORD", type=click.Path(path_type=Path))
@click.option("--case", help="Of a record: the profiled case. Default: the one that takes longest.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: docs/schemas/recommend.schema.json.")
@SESSIONS
@POLICY
def recommend(source: Path, case: str | None, as_json: bool, sessions: Path | None, policy_file: Path | None) -> None:
    """Say what to try next on a profiled kernel, how likely it helps and how much. Needs no GPU.

    Takes an Nsight Compute report, or a run record with a profile. Chances come from what sessions tried, and are
    followed where they have been shown to be better than the base rate; else it is the cookbook's order, and says so.

    Exit codes: 0 recommended, 3 there is no profile, or a file cannot be read, 64 usage.
    """
    from kernelgate.ci.advice import advise, outcomes, words
    from kernelgate.ci.judge import policy
    from kernelgate.ci.sessions import folder

    rules = policy.load(policy_file)
    answer = advise.advise(_profiled(source, case, rules), outcomes.read(sessions or folder.FOLDER), rules)
    click.echo(answer.model_dump_json(indent=2) if as_json else words.recommended(answer))


def _profiled(source: Path, case: str | None, rules: Policy) -> Analysis:
    """The launch that takes longest, or that of the case. Raises KernelgateError where nothing was profiled."""
    from kernelgate.bench import record
    from kernelgate.bench.errors import KernelgateError
    from kernelgate.bench.explain import ncu_reader
    from kernelgate.ci.explain import analyze
    from kernelgate.ci.report import thresholds, why

    limits = thresholds.bottleneck_limits(rules)
    if ncu_reader.is_report(source):
        if case is not None:
            raise UsageError("--case is for run records: a report does not say which case it is of")
        return max(analyze.analyze(source, limits), key=_duration)
    found = [one for one in why.both_sides(record.read(source)) if case in (None, one.key.id)]
    if not found:
        of = f"of {case} " if case else ""
        raise KernelgateError(f"{source} holds no profile {of}of the head: kernelgate profile --record {source}")
    return max((analyze.analyze_kernel(one.head, limits) for one in found), key=_duration)


def _duration(one: Analysis) -> float:
    return one.kernel.figures.get("duration_us", 0.0)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object: docs/schemas/outcomes.schema.json.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["parquet", "pairs"]),
    help="Write a Parquet file with a row for each case of a try, or pairs of slow and fast as JSON lines.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file that --format writes.")
@SESSIONS
@POLICY
def outcomes(
    as_json: bool,
    form: Literal["parquet", "pairs"] | None,
    output: Path | None,
    sessions: Path | None,
    policy_file: Path | None,
) -> None:
    """Say what came of all tries of all sessions, and what chances that are learnt from them are worth.

    Exit codes: 0 said or written, 3 a log cannot be read, or there is nothing to export, 64 usage, 74 not written.
    """
    from kernelgate.bench import files
    from kernelgate.ci.advice import advise, export, words
    from kernelgate.ci.advice import outcomes as learnt
    from kernelgate.ci.judge import policy
    from kernelgate.ci.sessions import folder

    if (form is None) != (output is None):
        raise UsageError("--format and -o go together: parquet or pairs, and the file")
    known = learnt.read(sessions or folder.FOLDER)
    if output is not None:
        if form == "parquet":
            export.as_parquet(known, output)
        else:
            files.write(output, "".join(f"{line}\n" for line in export.as_pairs(known)))
        click.echo(output)
        return
    answer = advise.published(known, policy.load(policy_file))
    click.echo(answer.model_dump_json(indent=2) if as_json else words.outcomes(answer))
