"""The verbs for coding agents: a server of tools, and the text that a session begins with."""

from __future__ import annotations

from pathlib import Path

import click

from kernelgate.bench.core.errors import KernelgateError


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
    from kernelgate.ci.lab.agents import tools
    from kernelgate.ci.lab.agents.budget import DeviceBudget
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
    from kernelgate.ci.lab.agents import prompt
    from kernelgate.ci.lab.patterns import apply, gathered, pattern
    from kernelgate.ci.lab.patterns.seen import Seen
    from kernelgate.ci.lab.sessions import folder
    from kernelgate.ci.policy import policy

    here, rules = Path.cwd(), policy.load(policy_file)
    events = folder.named(here, session).events
    known = pattern.read_all(pattern.folder(here))
    found = apply.applying(known, Seen(events=events), gathered.thresholds(rules))
    told = prompt.PromptRules(rules.gates.reference_min, rules.guidance.profile_below, rules.guidance.keep_from)
    text = prompt.prompt(events, found, told)
    click.echo(answers.PromptAnswer(session=session, text=text).shown() if as_json else text, nl=as_json)
