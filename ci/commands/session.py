"""The commands of an optimisation session: `kernelgate session new`, `next`, `gate`, `try`, `keep`, …"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import click

from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.ci.commands.exit_codes import STOP

if TYPE_CHECKING:
    from kernelgate.ci.lab.folder import Session
    from kernelgate.ci.lab.log import Event
    from kernelgate.ci.policy.policy import Policy

GATES = ("environment", "build", "correctness", "performance", "profile")
Kind = Literal["believed", "learnt", "mistake", "question", "other"]
Payer = Literal["gpu", "assistant", "other"]
Why = Literal["done", "time", "cost", "gate", "machine", "abandoned"]
named = click.option("--session", "name", help="Default: the one that is open.")
as_json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object.")


def _said(_: click.Context, asked: click.Parameter, text: str) -> str:
    """Raises BadParameter for nothing but white space: the log and the report would say nothing there."""
    if not text.strip():
        raise click.BadParameter("it is empty: say it in a few words", param=asked)
    return text


@click.group()
def session() -> None:
    """Optimise a kernel in a session: gates in order, one change at a time, each measured, and a report at the end."""


def checkout() -> Path:
    from kernelgate.bench.system import git

    root = git.toplevel(Path.cwd())
    if root is None:
        raise UsageError("a session needs a git checkout: it keeps each state that is measured")
    return root


def _opened(name: str | None) -> tuple[Session, Path, Policy]:
    """The session that is open, where, and the policy."""
    from kernelgate.ci.lab import folder
    from kernelgate.ci.policy import policy

    root = checkout()
    return folder.still_open(root, name), root, policy.load()


def _answer(
    found: Session,
    as_json: bool,
    *,
    logged: tuple[Event, ...] = (),
    files: tuple[Path, ...] = (),
    lines: tuple[str, ...] | None = None,
    **posted: str,
) -> int:
    """Prints what a command did as JSON; else these lines, or what comes next. The exit code says whether to stop."""
    from kernelgate.ci.document import answer
    from kernelgate.ci.lab import folder, profiled, report
    from kernelgate.ci.lab.state import SessionAnswer
    from kernelgate.ci.policy import policy

    root = checkout()
    state = profiled.state(folder.read(found.folder), root, policy.load())
    if as_json:
        shown = tuple(str(path.relative_to(root)) if path.is_relative_to(root) else str(path) for path in files)
        made = SessionAnswer(
            session=found.name,
            logged=logged,
            files=shown,
            address=posted.get("address"),
            text=posted.get("text"),
            next=state.next,
            stop=state.stop,
        )
        click.echo(answer.shown(made))
    elif lines is not None:
        click.echo("\n".join(lines))
    else:
        click.echo(f"Next, because {state.next.why}:", err=True)
        click.echo("\n".join(report.commands(state.next)))
    return STOP if state.stop else 0


@session.command()
@click.argument("objective", callback=_said)
@click.option("--card", help="Default: the only one.")
@click.option("--case", "cases", multiple=True, help="Of the card, as `kernelgate cards` lists them; may be repeated.")
@click.option("--template", type=click.Choice(["baseline", "optimise"]), default="optimise", show_default=True)
@click.option("--hypothesis", help="What is believed to hold the kernel back.")
@click.option("--target", type=click.FloatRange(min=0, min_open=True), help="Times as fast as the reference.")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Default: the sum of its time boxes.")
@click.option("--usd", type=click.FloatRange(min=0, min_open=True), help="Stop at this cost.")
@click.option("--name", default="", help="Default: made of the day and the objective.")
@as_json_option
def new(as_json: bool, **asked: object) -> None:
    """Begin a session with an OBJECTIVE, on this checkout and this machine.

    What is in the working tree now is the state that the first try is measured against.
    """
    from kernelgate.ci.lab import steps
    from kernelgate.ci.lab.log import Opened

    root = checkout()
    begun = steps.begin(root, Opened.model_validate(asked))
    click.echo(f"{begun.folder.relative_to(root)} is open", err=as_json)
    _answer(begun, as_json, logged=(begun.opened,), files=(begun.folder,))


@session.command()
@named
@as_json_option
def status(name: str | None, as_json: bool) -> int:
    """Show gates, tries and budgets, and which is next and why.

    Exit codes: 0, 4 the session's time or money is spent: close it, 64 usage.
    """
    from kernelgate.ci.document import answer
    from kernelgate.ci.lab import folder, profiled, report
    from kernelgate.ci.policy import policy

    root = checkout()
    state = profiled.state(folder.named(root, name), root, policy.load())
    click.echo(answer.shown(state) if as_json else "\n".join(report.status_lines(state)))
    return STOP if state.stop else 0


@session.command(name="next")
@named
@as_json_option
def next_(name: str | None, as_json: bool) -> int:
    """Print the command that comes next, and on standard error why.

    Before a change two: what says what to try, where there is a profile, and the try.

    Exit codes: 0, 4 the session's time or money is spent: close it, 64 usage.
    """
    return _answer(_opened(name)[0], as_json)


@session.command()
@click.argument("gate", required=False, type=click.Choice(GATES))
@click.option("--skip", metavar="REASON", help="Go on without this gate, and log why.")
@named
@as_json_option
def gate(gate: str | None, skip: str | None, name: str | None, as_json: bool) -> int:
    """Try to pass a GATE on the working tree; without one, all that are open, in order, to the first that fails.

    Exit codes: 0 passed, 1 failed, 4 the session's time or money is spent, 64 usage.
    """
    from kernelgate.ci.lab import gating

    found, root, policy = _opened(name)
    if skip is not None and gate is None:
        raise UsageError("--skip needs the gate that is skipped")
    made = gating.run(found, root, policy, gate, skip, lambda text: click.echo(text, err=as_json))
    return _answer(found, as_json, logged=made) or int(not all(one.passed for one in made))


@session.command(name="try")
@click.argument("what", callback=_said)
@click.argument("why", callback=_said)
@click.option("--action", help="The stable name of this kind of change, as `kernelgate recommend` names it.")
@click.option(
    "--recommended", is_flag=True, help="The action was recommended; without --action: the one that `next` names."
)
@named
@as_json_option
def try_(what: str, why: str, action: str | None, recommended: bool, name: str | None, as_json: bool) -> int:
    """Measure the change since the last kept state: WHAT was changed, and WHY it should help.

    Builds, fuzzes, times against what stood before in the same processes, and profiles both where ncu is. Nothing is
    done to the working tree.

    Exit codes: 0 certainly faster and by enough: keep it, 1 it does not compile or is wrong, 2 not certainly faster, or
    not by enough: revert it, 3 it could not be measured, 4 the session's time or money is spent, 64 usage.
    """
    from kernelgate.ci.lab import coming, folder, report, trying
    from kernelgate.ci.lab.log import TriedChange

    found, root, policy = _opened(name)
    state = coming.of(found.events, policy, folder.now())
    if state.stop:
        click.echo(f"stop: {state.stop_reason}: {state.next.command}", err=True)
        return _answer(found, as_json, lines=())
    asked = TriedChange(what=what, why=why, action=action, recommended=recommended)
    event = trying.run(found, root, policy, asked, folder.every(root))
    _answer(found, as_json, logged=(event,), lines=tuple(report.try_lines(event)))
    if event.failed is not None:
        return 3 if event.failed == "measurement" else 1
    return 0 if event.advised == "keep" else 2


@session.command()
@click.option("--why", default="", help="Default: what the measurement said.")
@named
@as_json_option
def keep(why: str, name: str | None, as_json: bool) -> int:
    """Keep the last try: the next one is measured against it."""
    from kernelgate.ci.lab import steps

    found, _, _ = _opened(name)
    decided = steps.keep(found, why)
    click.echo(f"try {decided.number} is kept", err=as_json)
    return _answer(found, as_json, logged=(decided,))


@session.command()
@click.option("--why", default="", help="Default: what the measurement said.")
@named
@as_json_option
def revert(why: str, name: str | None, as_json: bool) -> int:
    """Take the last try back: the sources are again as at the last kept state, and the change is kept as a patch."""
    from kernelgate.ci.lab import steps

    found, root, _ = _opened(name)
    decided, path = steps.revert(found, root, why)
    was = f"; the change is kept in {path.relative_to(root)}" if path else ": the sources were as before already"
    click.echo(f"try {decided.number} is reverted{was}", err=as_json)
    return _answer(found, as_json, logged=(decided,), files=(path,) if path else ())


@session.command()
@click.argument("said", callback=_said)
@click.option("--kind", type=click.Choice(get_args(Kind)), default="learnt", show_default=True)
@named
@as_json_option
def note(said: str, kind: Kind, name: str | None, as_json: bool) -> None:
    """Log what was believed, learnt or done wrong, for the report."""
    from kernelgate.ci.lab import folder
    from kernelgate.ci.lab.log import SessionNote

    found, _, _ = _opened(name)
    made = SessionNote(at=folder.now(), said=said, kind=kind)
    folder.append(found.folder, made)
    if as_json:
        _answer(found, as_json, logged=(made,))


@session.command()
@click.argument("usd", type=click.FloatRange(min=0))
@click.argument("of", type=click.Choice(get_args(Payer)))
@click.option("--said", default="", help="What for.")
@named
@as_json_option
def cost(usd: float, of: Payer, said: str, name: str | None, as_json: bool) -> int:
    """Log what was paid: USD of the gpu, the assistant, or else. A GPU whose price the policy knows is counted already.

    Exit codes: 0, 4 the session's money is spent: close it, 64 usage.
    """
    from kernelgate.ci.lab import folder
    from kernelgate.ci.lab.log import SessionCost

    found, _, _ = _opened(name)
    made = SessionCost(at=folder.now(), of=of, usd=usd, said=said)
    folder.append(found.folder, made)
    return _answer(found, as_json, logged=(made,))


@session.command()
@as_json_option
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Draw time and speed-up by session into this SVG file."
)
def metrics(as_json: bool, output: Path | None) -> None:
    """Set all sessions beside each other: time, speed-up, tries, mistakes, cost; and what can be said over them."""
    from kernelgate.bench.core import files
    from kernelgate.ci.document import answer
    from kernelgate.ci.lab import coming, drawings, folder
    from kernelgate.ci.lab import metrics as across
    from kernelgate.ci.policy import policy

    rules, at = policy.load(), folder.now()
    rows = [coming.summary(one.events, rules, at) for one in folder.every(checkout())]
    if output:
        if not rows:
            raise UsageError("there is no session to draw: begin one with `kernelgate session new`")
        files.write(output, drawings.file(drawings.beside(rows)))
    click.echo(answer.shown(across.beside(rows)) if as_json else "\n".join(across.lines(rows)))


@session.command()
@click.option("--why", type=click.Choice(get_args(Why)), default="done", show_default=True)
@click.option("--learnt", "said", default="", help="What was learnt, in a sentence.")
@named
@as_json_option
def close(why: Why, said: str, name: str | None, as_json: bool) -> None:
    """End the session, and write its report."""
    from kernelgate.ci.lab import folder, steps

    found, root, policy = _opened(name)
    written = steps.close(found, policy, why, said)
    logged = folder.read(found.folder).events[len(found.events) :]
    shown = tuple(str(path.relative_to(root)) for path in written)
    _answer(found, as_json, logged=logged, files=written, lines=shown)


@session.command()
@named
@as_json_option
def review(name: str | None, as_json: bool) -> None:
    """Write what an expert fills in: the session's report, its questions, and each try with room for a correction.

    The file is review.md in the session's folder; commit it once it is filled in.
    """
    from kernelgate.ci.lab import folder, steps
    from kernelgate.ci.policy import policy

    root = checkout()
    found = folder.named(root, name)
    path = steps.ask_for_review(found, policy.load())
    _answer(found, as_json, files=(path,), lines=(str(path.relative_to(root)),))


@session.command()
@click.option("--pull-request", type=click.IntRange(min=1), help="Comment on this one, in place of an issue.")
@click.option("--dry-run", is_flag=True, help="Print what would be posted.")
@named
@as_json_option
def submit(pull_request: int | None, dry_run: bool, name: str | None, as_json: bool) -> None:
    """Ask experts for a review, in an issue: the session's report, its questions, and how to answer.

    With GITHUB_TOKEN, in the repository GITHUB_REPOSITORY. Submitted again, the issue or comment that is there changes.

    Exit codes: 0 posted or printed, 3 GitHub refused, or a person closed the issue, 64 usage.
    """
    from kernelgate.ci.github import actions
    from kernelgate.ci.lab import folder
    from kernelgate.ci.lab import review as experts
    from kernelgate.ci.policy import policy

    root = checkout()
    session = folder.named(root, name)
    made = experts.gathered(root, session, policy.load())
    if dry_run:
        _answer(session, as_json, text=made.report, lines=(made.report.rstrip("\n"),))
        return
    with actions.answering() if as_json else nullcontext():
        address = experts.post(actions.Step(), made, pull_request)
    _answer(session, as_json, address=address, text=made.report, lines=(address,))


@session.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the page into this HTML file.")
@click.option("--serve", is_flag=True, help="Show it live to browsers of this machine, until Ctrl-C.")
@click.option("--port", type=click.IntRange(0, 65535), default=8756, show_default=True, help="For --serve; 0: any.")
@named
@as_json_option
def page(output: Path | None, serve: bool, port: int, name: str | None, as_json: bool) -> None:
    """Show a session as a page: gates, metrics against targets, tries, and a calculator of what fits on a GPU.

    Give -o or --serve. --serve answers on 127.0.0.1 alone, and needs the extra `page`.

    Exit codes: 0 written, or ended by Ctrl-C, 3 could not run, 64 usage.
    """
    from kernelgate.bench.core import files
    from kernelgate.ci.lab import folder
    from kernelgate.ci.lab import page as write
    from kernelgate.ci.policy import policy

    if serve == (output is not None):
        raise UsageError("give one of -o FILE, which writes the page, and --serve, which shows it live")
    root, rules = checkout(), policy.load()
    found = folder.named(root, name)
    if output:
        files.try_file(output)
        files.write(output, write.page(write.state(found.folder, rules), write.known(root)))
        _answer(found, as_json, files=(output,), lines=(str(output),))
        return
    try:
        from kernelgate.ci.lab import page_server
    except ModuleNotFoundError as error:
        if error.name != "uvicorn":
            raise
        raise KernelgateError("--serve needs uvicorn, which is not installed: pip install 'kernelgate[page]'") from None
    known = write.known(root)
    served = page_server.Served(
        page=lambda: write.page(write.state(found.folder, rules), known, live=True),
        state_json=lambda: write.state_json(write.state(found.folder, rules)),
    )

    def say(address: str) -> None:
        _answer(found, as_json, address=address, lines=(f"{address} shows the session; Ctrl-C ends it",))

    page_server.serve(port, served, say)
