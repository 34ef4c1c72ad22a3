"""The commands beside a session: `recommend`, `outcomes`, `patterns`, `prompt` and `mcp`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from kernelgate.bench.core.errors import KernelgateError, UsageError

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
    from kernelgate.ci.lab import advice_words as words
    from kernelgate.ci.lab import advise, folder, outcomes, profiled
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
    from kernelgate.ci.lab import advice_words as words
    from kernelgate.ci.lab import advise, export, folder
    from kernelgate.ci.lab import outcomes as learnt
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


@click.command()
@click.option("--session", help="Look at this session's log. Default: the one that is open, where there is one.")
@click.option("--record", "run", type=click.Path(path_type=Path), help="Look at this run record, too.")
@click.option("--doctor", type=click.Path(path_type=Path), help="Look at what `kernelgate doctor -o FILE` wrote, too.")
@click.option("--all", "every", is_flag=True, help="List all patterns, also those that do not apply now.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: `patterns`, and what was `looked_at`.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def patterns(
    session: str | None, run: Path | None, doctor: Path | None, every: bool, as_json: bool, policy_file: Path | None
) -> None:
    """List the patterns that apply now, each with the figure that says so and the command to run. Needs no GPU.

    They are the files of the checkout's docs/patterns, else kernelgate's own.

    Exit codes: 0 listed, 3 a file cannot be read, 64 usage.
    """
    from kernelgate.bench import record
    from kernelgate.ci.lab import apply, folder, gathered, pattern
    from kernelgate.ci.lab import pattern_words as words
    from kernelgate.ci.lab.seen import JudgedTimes, Seen
    from kernelgate.ci.policy import policy

    here, rules = Path.cwd(), policy.load(policy_file)
    started = folder.waiting_in(here) if session is None else (folder.named(here, session),)
    chosen = started[0] if len(started) == 1 else None
    made = record.read(run) if run else None
    seen = Seen(
        gathered.doctor(doctor) if doctor else (),
        made,
        gathered.times(made, rules) if made else JudgedTimes(),
        chosen.events if chosen else (),
    )
    looked_at = [
        *([f"session {chosen.name}"] if chosen else []),
        *([str(run)] if run else []),
        *([str(doctor)] if doctor else []),
    ]
    known = pattern.read_all(pattern.folder(here))
    found = (apply.judged if every else apply.applying)(known, seen, gathered.thresholds(rules))
    click.echo(words.to_json(found, looked_at) if as_json else words.to_text(found, looked_at))


@click.command()
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
@click.pass_context
def mcp(context: click.Context, policy_file: Path | None) -> None:
    """Serve doctor, build, fuzz, bench, session and more to an agent, over the Model Context Protocol (stdio).

    What an agent may take is in [agents] of the policy, read once when the server starts: GPU-seconds in all and in a
    session, seconds of a call, bytes of an answer. Its paths stay in the checkout, its output below out/, and the verbs
    see no token. Needs the extra `mcp`.

    Exit codes: 0 the client closed the connection, 3 could not run, 64 usage.
    """
    from kernelgate.bench.system import git
    from kernelgate.ci.lab import agent_tools as tools
    from kernelgate.ci.lab.budget import DeviceBudget
    from kernelgate.ci.policy import policy

    try:
        import anyio

        from kernelgate.ci.lab.agents_server import AgentsServer
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"anyio", "mcp"}:
            raise
        raise KernelgateError(
            f"the server needs {error.name}, which is not installed: pip install 'kernelgate[mcp]'"
        ) from None
    root = context.find_root().command
    assert isinstance(root, click.Group)  # noqa: S101 - the list of verbs is one
    rules = policy.load(policy_file).agents
    server = AgentsServer(git.root(Path.cwd()), tools.offered(root), DeviceBudget(rules))
    anyio.run(server.serve)


@click.command()
@click.argument("session")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: the `session` and the `text`.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def prompt(session: str, as_json: bool, policy_file: Path | None) -> None:
    """Print the text that work on SESSION begins with: objective, state, constraints, patterns, last results.

    Exit codes: 0 printed, 3 its log is broken, 64 usage or no such session.
    """
    from kernelgate.ci.commands import answers
    from kernelgate.ci.lab import apply, folder, gathered, pattern, prompt
    from kernelgate.ci.lab.seen import Seen
    from kernelgate.ci.policy import policy

    here, rules = Path.cwd(), policy.load(policy_file)
    events = folder.named(here, session).events
    known = pattern.read_all(pattern.folder(here))
    found = apply.applying(known, Seen(events=events), gathered.thresholds(rules))
    told = prompt.PromptRules(rules.gates.reference_min, rules.guidance.profile_below, rules.guidance.keep_from)
    text = prompt.prompt(events, found, told)
    click.echo(answers.PromptAnswer(session=session, text=text).shown() if as_json else text, nl=as_json)
