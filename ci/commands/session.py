"""The commands of an optimisation session: `kernelgate session new`, `next`, `gate`, `try`, `keep`, …"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, get_args

import click

from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.system import git, progress
from kernelgate.ci.commands.exit_codes import STOP
from kernelgate.ci.commands.options import AT_LEAST_0, MORE_THAN_0, OUTPUT, Answered, answers, argument
from kernelgate.ci.lab import advice, drawings, folder, gating, log, patterns, report, state, trying
from kernelgate.ci.lab import metrics as across
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import Opened, PatternUse, SessionCost, SessionNote, TriedChange
from kernelgate.ci.lab.state import state_of, summary
from kernelgate.ci.policy import policy
from kernelgate.ci.policy.policy import Policy

GATES = [gate for gate in get_args(log.GateName) if gate != "document"]


def _said(_: click.Context, asked: click.Parameter, text: str) -> str:
    """Raises BadParameter for nothing but white space: the log and the report would say nothing there."""
    if not text.strip():
        raise click.BadParameter("it is empty: say it in a few words", param=asked)
    return text


def checkout() -> Path:
    root = git.toplevel(Path.cwd())
    if root is None:
        git.is_shallow(Path.cwd())  # which says why git cannot read what is here
        raise UsageError("a session needs a git checkout: it keeps each state that is measured")
    return root


@dataclass(frozen=True)
class SessionAtHand:
    session: Session
    root: Path
    rules: Policy

    @property
    def state(self) -> state.SessionState:
        """With what is recommended before the next change."""
        now = folder.read(self.session.folder)
        at_hand = advice.at_hand(now, self.root) if now.is_open else None
        return state_of(now.events, self.rules, folder.now(), at_hand)

    def below(self, path: Path) -> str:
        return str(path.relative_to(self.root) if path.is_relative_to(self.root) else path)

    def answer(
        self, lines: Iterable[str] | None = None, written: Iterable[Path] = (), code: int = 0, **told: Any
    ) -> Answered:
        """What a command did, and for people these lines; without any, what comes next, or that it is to stop."""
        now = self.state
        common = {"logged": (), "next": now.next, "stop": now.stop, **told}
        made = state.SessionAnswer(session=self.session.name, files=tuple(map(self.below, written)), **common)
        if lines is not None:
            return Answered(made, "\n".join(lines), code)

        def show_next() -> None:
            progress.say(f"Next, because {now.next.why}:")
            click.echo("\n".join(now.next.commands))

        return Answered(made, show_next, STOP if now.stop else code)


def on_session(
    find: Callable[[Path, str | None], Session], model: type = state.SessionAnswer
) -> Callable[[Callable[..., Answered]], Callable[..., Any]]:
    """Gives a command --session and --json, and first of all the session that is found."""

    def given(command: Callable[..., Answered]) -> Callable[..., Any]:
        @click.option("--session", "name", help="Default: the one that is open.")
        @answers(model)
        @wraps(command)
        def on_found(*, name: str | None, **options: Any) -> Answered:
            root = checkout()
            return command(SessionAtHand(find(root, name), root, policy.load()), **options)

        return on_found

    return given


@click.group()
def session() -> None:
    """Optimise a kernel in a session: gates in order, one change at a time, each measured, and a report at the end."""


@session.command()
@argument("objective", callback=_said, about="What is to be reached")
@click.option("--card", help="Default: the only one.")
@click.option("--case", "cases", multiple=True, help="Of the card, as `kernelgate cards` lists them; may be repeated.")
@click.option(
    "--template", type=click.Choice(get_args(log.Template)), default="optimise", show_default=True, help="Which gates."
)
@click.option("--hypothesis", help="What is believed to hold the kernel back.")
@click.option("--target", type=MORE_THAN_0, help="Times as fast as the reference.")
@click.option("--minutes", type=MORE_THAN_0, help="Default: 190; with the template baseline, 30.")
@click.option("--usd", type=MORE_THAN_0, help="Stop at this cost.")
@click.option("--name", default="", help="Default: made of the day and the objective.")
@answers(state.SessionAnswer)
def new(**asked: object) -> Answered:
    """Begin a session with an OBJECTIVE, on this checkout and this machine.

    What is in the working tree now is the state that the first try is measured against.
    """
    root, rules = checkout(), policy.load()
    begun = SessionAtHand(trying.begin(root, Opened.model_validate(asked)), root, rules)
    progress.say(f"{begun.below(begun.session.folder)} is open")
    return begun.answer(logged=(begun.session.opened,), written=(begun.session.folder,))


@session.command()
@on_session(folder.named, state.SessionState)
def status(work: SessionAtHand) -> Answered:
    """Show gates, tries and budgets, and which is next and why.

    Exit codes: 0, 4 the session's time or money is spent: close it, 64 usage.
    """
    now = work.state
    return Answered(now, "\n".join(report.status_lines(now)), STOP if now.stop else 0)


@session.command(name="next")
@on_session(folder.still_open)
def next_(work: SessionAtHand) -> Answered:
    """Print the command that comes next, and on standard error why.

    Before a change two: what says what to try, where there is a profile, and the try.

    Exit codes: 0, 4 the session's time or money is spent: close it, 64 usage.
    """
    return work.answer()


@session.command()
@argument("gate", required=False, type=click.Choice(GATES), about="Default: all that are open")
@click.option("--skip", metavar="REASON", help="Go on without this gate, and log why.")
@on_session(folder.still_open)
def gate(work: SessionAtHand, gate: str | None, skip: str | None) -> Answered:
    """Try to pass a GATE on the working tree; without one, all that are open, in order, to the first that fails.

    Exit codes: 0 passed, 1 failed, 4 the session's time or money is spent, 64 usage.
    """
    if skip is not None and gate is None:
        raise UsageError("--skip needs the gate that is skipped")
    made = gating.run(work.session, work.root, work.rules, gate, skip)
    return work.answer(logged=made, code=int(not all(one.passed for one in made)))


@session.command(name="try")
@argument("what", callback=_said, about="What was changed")
@argument("why", callback=_said, about="Why it should help")
@click.option("--action", help="The stable name of this kind of change, as `kernelgate recommend` names it.")
@on_session(folder.still_open)
def try_(work: SessionAtHand, **asked: object) -> Answered:
    """Measure the change since the last kept state: WHAT was changed, and WHY it should help.

    Builds, fuzzes, times against what stood before in the same processes, and profiles both where ncu is. Nothing is
    done to the working tree.

    Exit codes: 0 certainly faster and by enough: keep it, 1 it does not compile or is wrong, 2 not certainly faster, or
    not by enough: revert it, 3 it could not be measured, 4 the session's time or money is spent, 64 usage.
    """
    now = state_of(work.session.events, work.rules, folder.now())
    if now.stop:
        progress.say(f"stop: {now.stop_reason}: {now.next.command}")
        return work.answer((), code=STOP)
    change = TriedChange.model_validate(asked)
    event = trying.run(work.session, work.root, work.rules, change)
    code = {None: 0 if event.advised == "keep" else 2, "measurement": 3}.get(event.failed, 1)
    return work.answer(report.try_lines(event), logged=(event,), code=code)


@session.command()
@click.option("--why", default="", help="Default: what the measurement said.")
@on_session(folder.still_open)
def keep(work: SessionAtHand, why: str) -> Answered:
    """Keep the last try: the next one is measured against it."""
    decided = trying.keep(work.session, why)
    progress.say(f"try {decided.number} is kept")
    return work.answer(logged=(decided,))


@session.command()
@click.option("--why", default="", help="Default: what the measurement said.")
@on_session(folder.still_open)
def revert(work: SessionAtHand, why: str) -> Answered:
    """Take the last try back: the sources are again as at the last kept state, and the change is kept as a patch."""
    decided, path = trying.revert(work.session, work.root, why)
    was = f"; the change is kept in {work.below(path)}" if path else ": the sources were as before already"
    progress.say(f"try {decided.number} is reverted{was}")
    return work.answer(logged=(decided,), written=(path,) if path else ())


@session.command()
@argument("said", callback=_said, about="What to log")
@click.option("--kind", type=click.Choice(get_args(log.NoteKind)), default="learnt", help="Default: learnt.")
@click.option("--pattern", metavar="NAME", help="One that was applied, violated or learnt.")
@click.option("--how", type=click.Choice(("applied", "violated", "learnt")), help="Default: applied.")
@click.option("--minutes", type=AT_LEAST_0, help="Lost on a wrong path, or saved by a pattern.")
@on_session(folder.still_open)
def note(work: SessionAtHand, kind: Any, pattern: str | None, how: Any, **said: Any) -> Answered:
    """Log what was believed, learnt or done wrong, for the report."""
    known = [one.name for one in patterns.read_all(patterns.file_of(work.root))]
    if (how and not pattern) or (pattern and how != "learnt" and pattern not in known):
        raise UsageError(f"--how is of a --pattern: a new one with --how learnt, or one of {', '.join(known)}")
    said["at"] = folder.now()
    use = PatternUse(pattern=pattern, how=how or "applied", **said) if pattern else None
    made = use or SessionNote(kind=kind, **said)
    folder.append(work.session.folder, made)
    return work.answer((), logged=(made,))


@session.command()
@argument("usd", type=AT_LEAST_0, about="What was paid")
@argument("of", type=click.Choice(get_args(log.Payer)), about="For what")
@click.option("--said", default="", help="What for.")
@on_session(folder.still_open)
def cost(work: SessionAtHand, usd: float, of: log.Payer, said: str) -> Answered:
    """Log what was paid: USD of the gpu, the assistant, or else. A GPU whose price the policy knows is counted already.

    Exit codes: 0, 4 the session's money is spent: close it, 64 usage.
    """
    made = SessionCost(at=folder.now(), of=of, usd=usd, said=said)
    folder.append(work.session.folder, made)
    return work.answer(logged=(made,))


@session.command()
@answers(across.SessionsBeside)
@click.option("-o", "--output", type=OUTPUT, help="Draw them into this SVG file.")
def metrics(output: Path | None) -> Answered:
    """Set all sessions beside each other: time, speed-up, tries, mistakes, cost; and what can be said over them."""
    rules, at = policy.load(), folder.now()
    rows = [summary(one.events, rules, at) for one in folder.every(checkout())]
    if output and not rows:
        raise UsageError("there is no session to draw: begin one with `kernelgate session new`")
    drawn = {output: drawings.file(drawings.beside(rows))} if output else {}
    return Answered(across.beside(rows), "\n".join(across.lines(rows)), files=drawn)


@session.command()
@click.option("--why", type=click.Choice(get_args(log.ClosedWhy)), default="done", help="Default: done.")
@click.option("--learnt", "said", default="", help="What was learnt, in a sentence.")
@on_session(folder.still_open)
def close(work: SessionAtHand, why: log.ClosedWhy, said: str) -> Answered:
    """End the session, and write its report."""
    written = trying.close(work.session, work.rules, why, said)
    logged = folder.read(work.session.folder).events[len(work.session.events) :]
    return work.answer(map(work.below, written), written, logged=logged)


@session.command()
@on_session(folder.named)
def review(work: SessionAtHand) -> Answered:
    """Write what an expert fills in: the session's report, its questions, and each try with room for a correction.

    The file is review.md in the session's folder; commit it once it is filled in.
    """
    path = work.session.folder / report.REVIEW
    if path.exists():
        raise UsageError(f"{path} is there already: fill it in, or remove it first")  # it may be filled in
    text = report.for_review(work.session.events, work.rules, folder.now())
    return replace(work.answer((work.below(path),), (path,)), files={path: text})
