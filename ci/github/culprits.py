"""One issue for each commit that made a case slower, and for each drift, as `kernelgate history culprits` has them."""

from __future__ import annotations

import re
from pathlib import Path

from kernelgate.ci.document import escape, formatting, render
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code, Line, Link, Paragraph, Piece, Strong, Table, Verbatim, table
from kernelgate.ci.github.actions import Step, read_written
from kernelgate.ci.github.client import Bot, GitHubError, patiently, until_done
from kernelgate.ci.github.upsert import of_another_author, own, same_text
from kernelgate.ci.history.facts import Culprit, KnownCulprits
from kernelgate.ci.report import links
from kernelgate.ci.report.links import Links

LABELS = {"commit": "kernelgate: culprit", "drift": "kernelgate: drift"}
FILE = "culprits.json"


def put(bot: Bot, folder: Path) -> None:
    """Each culprit of this repository has one issue, which is open while a case of it is slower. Raises UsageError for
    what is no folder of `kernelgate history culprits -o`."""
    for culprit in read_written(folder / FILE, KnownCulprits, "history culprits").culprits:
        if culprit.repository in ("", bot.step.repository or ""):
            done = _put(bot, culprit)
            bot.step.log(f"{culprit.commit[:12]}: {done}")


def issue_line(subject: str, state: str) -> str:
    return f"<!-- kernelgate-{subject} state={state} -->"


def _put(bot: Bot, culprit: Culprit) -> str:
    """There is one issue on the culprit, as it is wanted. None is begun for what is over. It is found by its label,
    never by GitHub's search, which lags. Its last line says what the bot did last: where the issue is in another state,
    a person decided, and it is left alone."""
    alone, commit = culprit.kind == "commit", bot.repository.get_commit(culprit.commit)
    pulls = patiently("pull request", lambda: list(commit.get_pulls()), bot) if alone else []
    pull = next((one.number for one in pulls if one.merged_at), None)
    subject = f"{'culprit' if alone else 'drift'} commit={culprit.commit}"
    state = "open" if culprit.is_slower else "closed"
    wanted = f"{body(culprit, pull, bot.step)}\n{issue_line(subject, state)}"
    last = re.compile(issue_line(re.escape(subject), "(open|closed)"))
    begun = False

    def step() -> str | None:
        nonlocal begun
        found = own(bot, bot.repository.get_issues(state="all", labels=[LABELS[culprit.kind]]), last)
        if not found:
            if state == "closed":
                return "nobody was told of it, and it is over"
            _create(bot, culprit, wanted)
            begun = True
            return None
        issue, was = found[0][0], found[0][1][1]
        if issue.state != was:
            return f"issue {issue.number} is left alone: a person has {issue.state} it"
        if was == state and same_text(issue.body, wanted):
            return f"issue {issue.number} {'created' if begun else 'is as it was'}"
        if was != state:
            # Unless it is the last thing that the bot said: a step may be repeated.
            said, change = own(bot, issue.get_comments(), re.compile(".*")), news(culprit, bot.step)
            if not said or not same_text(said[-1][0].body, change):
                issue.create_comment(change)
        fixed = any(case.state == "fixed" for case in culprit.cases)
        over = "completed" if fixed else "not_planned"
        issue.edit(body=wanted, state=state, state_reason="reopened" if culprit.is_slower else over)
        return None

    return until_done("issue", step, bot)


def _create(bot: Bot, culprit: Culprit, wanted: str) -> None:
    label = LABELS[culprit.kind]
    created = bot.repository.create_issue(title=visible(title(culprit), 200), body=wanted, labels=[label])
    why = of_another_author(bot, created)
    if why is None and label not in {known.name for known in created.labels}:
        # GitHub drops the labels of those who may not set them.
        why = f"the token may not set the label {label!r}, by which the issue is found again"
    if why is not None:
        created.edit(body="Posted by mistake.", state="closed", state_reason="not_planned")
        raise GitHubError(f"issue: {why}")


MAX_ROWS = 20
CLOSES = (
    " by itself once a comparison confirms that the time came back, or once it is accepted that it is slower, and "
    "opens again if that was not so. Close it yourself, and it stays closed. The label is how it is found again."
)


def title(culprit: Culprit) -> str:
    worst, *others = culprit.worst_first
    more = f" and {formatting.counted(len(others), 'more case')}" if others else ""
    by = formatting.percent(worst.change_pct, formatting.places(worst.interval_pct))
    where = culprit.commit[:7] if culprit.kind == "commit" else f"drift {culprit.previous[:7]}..{culprit.commit[:7]}"
    return f"{worst.named} is {by} slower{more}: {where}"


def body(culprit: Culprit, pull: int | None, step: Step) -> str:
    """All but the last line."""
    cases = [word for case in culprit.worst_first[:MAX_ROWS] for word in ("--case", case.named)]
    bench = escape.shell("kernelgate", "bench", "--base", culprit.previous, "--head", culprit.commit, *cases)
    each = "each case" if len(culprit.cases) > 1 else "it"
    sure = f"both commits were timed beside each other in the same processes; {each} has its 95% interval."
    what = Paragraph(_what(culprit, pull, Links(step.repository_url)))
    how_sure = Paragraph((Strong("How sure:"), f" {sure} Nights alone open no issue."))
    repeat = Paragraph((Strong("Repeat it"), " on such a GPU:")), Verbatim((bench, "kernelgate compare out/run.json"))
    return render.blocks((what, _table(culprit), how_sure, *repeat, Paragraph((Strong("It closes"), CLOSES))))


def news(culprit: Culprit, step: Step) -> str:
    """What is said where its state changes: what is slower again; else who fixed and who accepted what."""

    def named(state: str, by: str | None = None) -> Line:
        cases = [case for case in culprit.worst_first if case.state == state and by in (None, case.by)]
        return formatting.separated((Code(case.named),) for case in cases[:MAX_ROWS])

    if culprit.is_slower:
        return render.blocks((Paragraph(("Open again: slower as before are ", *named("slower"), ".")),))
    lines: list[Line] = []
    for by in dict.fromkeys(case.by for case in culprit.cases if case.state == "fixed"):
        fix = links.commit(by, by, Links(step.repository_url))
        lines.append((Strong("Fixed"), " by ", *fix, ", as a comparison confirmed: ", *named("fixed", by), "."))
    for by in dict.fromkeys(case.by for case in culprit.cases if case.state == "accepted"):
        lines.append((Strong("Accepted"), f" {by}: ", *named("accepted", by), "."))
    return render.blocks(tuple(map(Paragraph, lines)))


def _what(culprit: Culprit, pull: int | None, on_github: Links) -> Line:
    commit, previous = (links.commit(sha, "", on_github) for sha in (culprit.commit, culprit.previous))
    cases = formatting.counted(len(culprit.cases), "case")
    where = Link(f"#{pull}", f"{on_github.repository}/pull/{pull}")
    brought: Line = (", which came with ", where) if pull is not None else ()
    if culprit.commits == 1:
        made = f", made {cases} slower. The commit before it is "
        return (Strong("Commit"), " ", *commit, *brought, made, *previous, ".")
    if culprit.kind == "drift":
        made = f", made {cases} slower little by little. None of them made most of it, so that none is searched for."
        return (Strong("Drift"), f": {culprit.commits} commits, after ", *previous, " up to ", *commit, made)
    among = f"One of {culprit.commits} commits, after "
    return (among, *previous, " up to ", *commit, *brought, f", made {cases} slower. They could not be told apart.")


def _table(culprit: Culprit) -> Table:
    rows: list[tuple[Piece | Line, ...]] = []
    for case in culprit.worst_first[:MAX_ROWS]:
        change, between = formatting.signed(case.change_pct, case.interval_pct)
        now: Line = ("fixed by ", Code(case.by[:7])) if case.state == "fixed" else (case.state,)
        rows.append(((Strong(change), f" {between}"), Code(case.named), Code(case.gpu), now))
    if (left := len(culprit.cases) - len(rows)) > 0:
        rows.append(("", f"and {left} more", "", ""))
    return table(("#change", "case", "GPU", "now"), rows)
