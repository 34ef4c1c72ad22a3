"""The verbs that learn from what sessions tried. They need no GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from kernelgate.bench.core.errors import UsageError

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
    from kernelgate.ci.lab import profiled
    from kernelgate.ci.lab.advice import advise, outcomes, words
    from kernelgate.ci.lab.sessions import folder
    from kernelgate.ci.policy import policy

    rules = policy.load(policy_file)
    answer = advise.advise(profiled.read(source, case, rules), outcomes.read(sessions or folder.FOLDER), rules)
    click.echo(answer.shown() if as_json else words.recommended(answer))


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
    from kernelgate.bench.core import files
    from kernelgate.ci.lab.advice import advise, export, words
    from kernelgate.ci.lab.advice import outcomes as learnt
    from kernelgate.ci.lab.sessions import folder
    from kernelgate.ci.policy import policy

    if (form is None) != (output is None):
        raise UsageError("--format and -o go together: parquet or pairs, and the file")
    known = learnt.read(sessions or folder.FOLDER)
    if output is not None:
        if form == "parquet":
            export.as_parquet(known, output)
        else:
            files.write(output, "".join(f"{line}\n" for line in export.as_pairs(known)))
        click.echo(output, err=as_json)
        if not as_json:
            return
    answer = advise.published(known, policy.load(policy_file))
    click.echo(answer.shown() if as_json else words.outcomes(answer))
