"""The commands beside a session: `recommend`, `outcomes`, `patterns`, `prompt` and `mcp`."""

from __future__ import annotations

import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from kernelgate.bench import record
from kernelgate.bench.system import git
from kernelgate.ci.commands.options import PATH, Answered, answers, argument, with_rules
from kernelgate.ci.lab import advice, folder, report
from kernelgate.ci.lab import patterns as known_patterns
from kernelgate.ci.lab.patterns import Seen
from kernelgate.ci.policy.policy import Policy


def _folder(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """One that may not be looked into is no wrong option."""
    with suppress(FileNotFoundError):
        if path is None or stat.S_ISDIR(path.stat().st_mode):
            return path
    raise click.BadParameter(f"there is no folder {path}")


SESSIONS = click.option(
    "--sessions", type=PATH, callback=_folder, help="The folder of the sessions' logs. Default: .ci/sessions."
)


@click.command()
@argument("source", metavar="REPORT_OR_RECORD", type=PATH, about="Of Nsight Compute, or a run record with a profile")
@click.option("--case", help="Of a record: the profiled case. Default: the one that takes longest.")
@answers(advice.Recommended)
@SESSIONS
def recommend(source: Path, case: str | None, sessions: Path | None) -> Answered:
    """Say what to try next on a profiled kernel, and what came of it in all sessions. Needs no GPU.

    Takes an Nsight Compute report, or a run record with a profile. The order is the cookbook's.

    Exit codes: 0 recommended, 3 there is no profile, or a file cannot be read, 64 usage.
    """
    found = advice.answer(source, sessions or folder.FOLDER, case)
    return Answered(found, "\n".join(advice.recommended_lines(found)))


@click.command()
@answers(advice.ActionTable)
@SESSIONS
def outcomes(sessions: Path | None) -> Answered:
    """Say what came of all tries of all sessions, by action and bottleneck; below five sessions it is not measured.

    A log that cannot be read is said, and left out.
    """
    found = advice.table(sessions or folder.FOLDER)
    return Answered(found, "\n".join(advice.table_lines(found)))


@click.command()
@click.option("--session", help="Look at this session's log. Default: the one that is open, where there is one.")
@click.option("--record", "run", type=PATH, help="Look at this run record, too.")
@click.option("--doctor", type=PATH, help="Look at what `kernelgate doctor -o FILE` wrote, too.")
@click.option("--all", "every", is_flag=True, help="List all patterns, also those that do not apply now.")
@answers(known_patterns.PatternsNow)
@with_rules()
def patterns(session: str | None, run: Path | None, doctor: Path | None, every: bool, rules: Policy) -> Answered:
    """List the patterns that apply now, each with the figure that says so and the command to run. Needs no GPU.

    They are the sections of the checkout's .ci/patterns.md, else kernelgate's own.

    Exit codes: 0 listed, 3 a file cannot be read, 64 usage.
    """
    here = Path.cwd()
    started = folder.waiting_in(here) if session is None else (folder.named(here, session),)
    chosen = started[0] if len(started) == 1 else None
    checks = known_patterns.findings(doctor) if doctor else ()
    looked = Seen(chosen.events if chosen else (), record.read(run) if run else None, checks, rules)
    names = (f"session {chosen.name}" if chosen else "", str(run or ""), str(doctor or ""))
    listed = known_patterns.read_all(known_patterns.file_of(here))
    found = known_patterns.PatternsNow(tuple(filter(None, names)), known_patterns.applying(listed, looked, every))
    return Answered(found, known_patterns.to_text(found))


@dataclass(frozen=True)
class PromptAnswer:
    session: str
    text: str


@click.command()
@click.argument("session")
@answers(PromptAnswer, "Print one JSON object: the `session` and the `text`.")
@with_rules()
def prompt(session: str, rules: Policy) -> Answered:
    """Print the text that work on SESSION begins with: objective, state, constraints, patterns, last results.

    Exit codes: 0 printed, 3 its log is broken, 64 usage or no such session.
    """
    here = Path.cwd()
    events = folder.named(here, session).events
    listed = known_patterns.read_all(known_patterns.file_of(here))
    found = known_patterns.applying(listed, Seen(events, policy=rules))
    text = report.prompt(events, found, rules, folder.now())
    return Answered(PromptAnswer(session, text), text.removesuffix("\n"))


@click.command()
@with_rules()
@click.pass_context
def mcp(context: click.Context, rules: Policy) -> None:
    """Serve doctor, build, fuzz, bench, session and more to an agent, over the Model Context Protocol (stdio).

    An agent may take the GPU-seconds of [agents] in the policy, which is read once when the server starts. Its paths
    stay in the checkout, its output below out/, and the verbs see no token. Needs the extra `mcp`.

    Exit codes: 0 the client closed the connection, 3 could not run, 64 usage.
    """
    import anyio

    from kernelgate.ci.lab import mcp_server, mcp_tools

    root = context.find_root().command
    assert isinstance(root, click.Group)  # noqa: S101 - the list of verbs is one
    budget = mcp_server.DeviceBudget(rules.agents.gpu_seconds)
    anyio.run(mcp_server.AgentsServer(git.root(Path.cwd()), mcp_tools.offered(root), budget).serve)
