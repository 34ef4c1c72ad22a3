"""The verbs of an optimisation session: `kernelgate session new`, `next`, `gate`, `try`, `keep`, …"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from kernelgate.bench.core.errors import UsageError
from kernelgate.ci.commands.exit_codes import STOP
from kernelgate.ci.commands.options import step_answer

if TYPE_CHECKING:
    from kernelgate.ci.lab.folder import Session
    from kernelgate.ci.lab.session_answer import WhatIsNext
    from kernelgate.ci.policy.policy import Policy

GATES = ("environment", "build", "correctness", "performance", "profile")
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


@session.command()
@click.argument("objective", callback=_said)
@click.option("--card", help="Default: the only one.")
@click.option("--case", "cases", multiple=True, help="Of the card, as `kernelgate cards` lists them; may be repeated.")
@click.option("--template", type=click.Choice(["baseline", "optimise"]), default="optimise", show_default=True)
@click.option("--hypothesis", help="What is believed to hold the kernel back.")
@click.option("--target", type=click.FloatRange(min=0, min_open=True), help="Times as fast as the reference.")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Default: the sum of the policy's boxes.")
@click.option("--usd", type=click.FloatRange(min=0, min_open=True), help="Stop at this cost.")
@click.option("--name", help="Default: made of the day and the objective.")
@as_json_option
def new(
    objective: str,
    card: str | None,
    cases: tuple[str, ...],
    template: Literal["baseline", "optimise"],
    hypothesis: str | None,
    target: float | None,
    minutes: float | None,
    usd: float | None,
    name: str | None,
    as_json: bool,
) -> None:
    """Begin a session with an OBJECTIVE, on this checkout and this machine.

    What is in the working tree now is the state that the first try is measured against.
    """
    from kernelgate.ci.lab import beginning
    from kernelgate.ci.lab.log import Opened
    from kernelgate.ci.lab.session_answer import BegunSession

    opened = Opened(
        name=name or "",
        objective=objective,
        hypothesis=hypothesis,
        target=target,
        template=template,
        card=card,
        cases=cases,
        minutes=minutes,
        usd=usd,
    )
    root = checkout()
    begun = beginning.begin(root, opened)
    folder = str(begun.folder.relative_to(root))
    click.echo(f"{folder} is open", err=as_json)
    _show(begun, as_json, BegunSession, folder=folder)


@session.command()
@named
@as_json_option
def status(name: str | None, as_json: bool) -> int:
    """Show gates, tries and budgets, and which is next and why.

    Exit codes: 0, 4 the session's time or money is spent: close it, 64 usage.
    """
    from kernelgate.ci.lab import advising, folder
    from kernelgate.ci.lab import session_words as words
    from kernelgate.ci.policy import policy

    root = checkout()
    state = advising.state(folder.named(root, name), root, policy.load())
    click.echo(words.to_json(state) if as_json else words.to_text(state))
    return STOP if state.stop else 0


@session.command(name="next")
@named
@as_json_option
def next_(name: str | None, as_json: bool) -> int:
    """Print the command that comes next, and on standard error why.

    Before a change two: what says what to try, where there is a profile, and the try.

    Exit codes: 0, 4 the session's time or money is spent: close it, 64 usage.
    """
    found, _, _ = _opened(name)
    return _show(found, as_json)


def _show(found: Session, as_json: bool, form: type[WhatIsNext] | None = None, **besides: object) -> int:
    """What comes next; as JSON with what this form of it has besides."""
    from kernelgate.ci.document.answer import shown
    from kernelgate.ci.lab import advising, folder
    from kernelgate.ci.lab import session_answer as answer
    from kernelgate.ci.lab import session_words as words
    from kernelgate.ci.policy import policy

    state = advising.state(folder.read(found.folder), checkout(), policy.load())
    if as_json:
        click.echo(shown(answer.of_next(state, form or answer.WhatIsNext, **besides)))
    else:
        click.echo(f"Next, because {state.next.why}:", err=True)
        click.echo("\n".join(words.commands(state.next)))
    return STOP if state.stop else 0


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
    from kernelgate.ci.lab.session_answer import GatesTried

    found, root, policy = _opened(name)
    if skip is not None and gate is None:
        raise UsageError("--skip needs the gate that is skipped")
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        click.echo(text, err=as_json)

    passed = gating.run(found, root, policy, gate, skip, say)
    return _show(found, as_json, GatesTried, passed=passed, said=tuple(said)) or int(not passed)


@session.command(name="try")
@click.argument("what", callback=_said)
@click.argument("why", callback=_said)
@click.option("--action", help="The stable name of this kind of change, as `kernelgate recommend` names it.")
@click.option(
    "--recommended", is_flag=True, help="The action was recommended; without --action: the one that `next` names."
)
@click.option("--predicted-gain-pct", type=float, help="Of the time. Default: as `kernelgate recommend` predicts it.")
@click.option(
    "--probability", type=click.FloatRange(0, 1), help="That it helps. Default: as `kernelgate recommend` has it."
)
@named
@as_json_option
def try_(
    what: str,
    why: str,
    action: str | None,
    recommended: bool,
    predicted_gain_pct: float | None,
    probability: float | None,
    name: str | None,
    as_json: bool,
) -> int:
    """Measure the change since the last kept state: WHAT was changed, and WHY it should help.

    Builds, fuzzes, times against what stood before in the same processes, and profiles both where ncu is. Nothing is
    done to the working tree.

    Exit codes: 0 certainly faster and by enough: keep it, 1 it does not compile or is wrong, 2 not certainly faster, or
    not by enough: revert it, 3 it could not be measured, 4 the session's time or money is spent, 64 usage.
    """
    from kernelgate.ci.document import answer
    from kernelgate.ci.lab import coming, folder, trying
    from kernelgate.ci.lab import session_words as words

    found, root, policy = _opened(name)
    state = coming.of(found.events, policy, folder.now())
    if state.stop:
        click.echo(f"stop: {state.stop_reason}: {state.next.command}", err=True)
        return _show(found, as_json) if as_json else STOP
    wanted = trying.TryRequest(what, why, action, recommended, predicted_gain_pct, probability)
    event = trying.run(found, root, policy, wanted, folder.every(root))
    click.echo(answer.shown(event) if as_json else words.of_try(event))
    if event.failed is not None:
        return 3 if event.failed == "measurement" else 1
    return 0 if event.advised == "keep" else 2


@session.command()
@click.option("--why", default="", help="Default: what the measurement said.")
@named
@as_json_option
def keep(why: str, name: str | None, as_json: bool) -> int:
    """Keep the last try: the next one is measured against it."""
    from kernelgate.ci.lab import deciding
    from kernelgate.ci.lab.session_answer import DecidedTry

    found, _, _ = _opened(name)
    decided = deciding.keep(found, why)
    click.echo(f"try {decided.number} is kept", err=as_json)
    return _show(found, as_json, DecidedTry, number=decided.number, kept=True, patch=None)


@session.command()
@click.option("--why", default="", help="Default: what the measurement said.")
@named
@as_json_option
def revert(why: str, name: str | None, as_json: bool) -> int:
    """Take the last try back: the sources are again as at the last kept state, and the change is kept as a patch."""
    from kernelgate.ci.lab import deciding
    from kernelgate.ci.lab.session_answer import DecidedTry

    found, root, _ = _opened(name)
    decided, path = deciding.revert(found, root, why)
    patch = str(path.relative_to(root)) if path else None
    was = f"; the change is kept in {patch}" if patch else ": the sources were as before already"
    click.echo(f"try {decided.number} is reverted{was}", err=as_json)
    return _show(found, as_json, DecidedTry, number=decided.number, kept=False, patch=patch)


@session.command()
@click.argument("said", callback=_said)
@click.option(
    "--kind",
    type=click.Choice(["believed", "learnt", "mistake", "question", "other"]),
    default="learnt",
    show_default=True,
)
@named
@as_json_option
def note(
    said: str, kind: Literal["believed", "learnt", "mistake", "question", "other"], name: str | None, as_json: bool
) -> None:
    """Log what was believed, learnt or done wrong, for the report."""
    from kernelgate.ci.lab import folder
    from kernelgate.ci.lab.log import SessionNote
    from kernelgate.ci.lab.session_answer import LoggedNote

    found, _, _ = _opened(name)
    folder.append(found.folder, SessionNote(at=folder.now(), said=said, kind=kind))
    if as_json:
        click.echo(LoggedNote(session=found.name, kind=kind, said=said).shown())


@session.command()
@click.argument("usd", type=click.FloatRange(min=0))
@click.argument("of", type=click.Choice(["gpu", "assistant", "other"]))
@click.option("--said", default="", help="What for.")
@named
@as_json_option
def cost(usd: float, of: Literal["gpu", "assistant", "other"], said: str, name: str | None, as_json: bool) -> int:
    """Log what was paid: USD of the gpu, the assistant, or else. A GPU whose price the policy knows is counted already.

    Exit codes: 0, 4 the session's money is spent: close it, 64 usage.
    """
    from kernelgate.ci.lab import folder
    from kernelgate.ci.lab.log import SessionCost
    from kernelgate.ci.lab.session_answer import LoggedCost

    found, _, _ = _opened(name)
    folder.append(found.folder, SessionCost(at=folder.now(), of=of, usd=usd, said=said))
    return _show(found, as_json, LoggedCost, of=of, usd=usd)


@session.command()
@as_json_option
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Draw time and speed-up by session into this SVG file."
)
def metrics(as_json: bool, output: Path | None) -> None:
    """Set all sessions beside each other: time, speed-up, tries, mistakes, cost; and what can be said over them."""
    from kernelgate.bench.core import files
    from kernelgate.ci.lab import folder, metrics_drawings
    from kernelgate.ci.lab import metrics as across
    from kernelgate.ci.policy import policy

    rules, at = policy.load(), folder.now()
    rows = [across.row(one.events, rules, at) for one in folder.every(checkout())]
    if output:
        drawn = metrics_drawings.file(rows)
        if drawn is None:
            raise UsageError("there is no session to draw: begin one with `kernelgate session new`")
        files.write(output, drawn)
    click.echo(across.to_json(rows) if as_json else across.to_text(rows))


@session.command()
@click.option(
    "--why",
    type=click.Choice(["done", "time", "cost", "gate", "machine", "abandoned"]),
    default="done",
    show_default=True,
)
@click.option("--learnt", "said", default="", help="What was learnt, in a sentence.")
@named
@as_json_option
def close(
    why: Literal["done", "time", "cost", "gate", "machine", "abandoned"], said: str, name: str | None, as_json: bool
) -> None:
    """End the session, and write its report."""
    from kernelgate.ci.lab import ending
    from kernelgate.ci.lab.session_answer import ClosedSession

    found, root, policy = _opened(name)
    written = tuple(str(path.relative_to(root)) for path in ending.close(found, policy, why, said))
    click.echo(ClosedSession(session=found.name, files=written).shown() if as_json else "\n".join(written))


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
    from kernelgate.ci.lab import folder, session_for_review
    from kernelgate.ci.lab.session_answer import SubmittedSession
    from kernelgate.ci.policy import policy

    root = checkout()
    made = session_for_review.of(root, folder.named(root, name), policy.load())
    issue = None
    if not dry_run:
        from kernelgate.ci.github import actions
        from kernelgate.ci.github.actions import Step
        from kernelgate.ci.lab import submit

        with actions.answering() if as_json else nullcontext():
            issue = submit.post(Step(), made, pull_request)
    if as_json:
        posted = None if dry_run else pull_request
        click.echo(SubmittedSession(session=made.name, text=made.report, pull_request=posted, issue=issue).shown())
    elif dry_run:
        click.echo(made.report, nl=False)


@session.command()
@click.option("--propose", is_flag=True, help="Open the pull request; else say whether there is one to open.")
@step_answer
def review(propose: bool) -> None:
    """In a workflow: make a pull request of a reviewer's answer, such as `/kernelgate pattern NAME: TEXT`.

    For people with write access only. Needs GITHUB_TOKEN.
    """
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.github.client import connect
    from kernelgate.ci.lab.review import answer

    step = Step()
    answer(step, connect(step), propose)
