"""The check runs of a commit: its verdict, with a remark beside each changed line that it is about, and what was
accepted of it.

Nobody but the bot can write there. GitHub ties a check run to its commit, so that nothing is left of it after the next
push. The comment that asked for it must still stand as it was: deleting or editing it takes an acceptance back.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal

from github.CheckRun import CheckRun as ShownRun
from github.GithubObject import NotSet
from pydantic import Field, ValidationError

from kernelgate.bench.record import CaseKey, Model
from kernelgate.ci.document import formatting, render
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code, Line
from kernelgate.ci.github.client import Bot, patiently, unless_gone, until_done
from kernelgate.ci.github.upsert import Posted, Stamp, same_text
from kernelgate.ci.judge.gate import Conclusion
from kernelgate.ci.report import remarks

Order = tuple[int, int]
"""A run's id and attempt."""
CHECK_NAME = "kernelgate verdict"
_REPLACED = {"title": "Replaced", "summary": "A newer run of the same commit took the place of this one."}
MAX_ANNOTATIONS = 50
"""GitHub takes no more in a request."""
ACCEPTED_NAME = "kernelgate accepted"
MAX_KEPT = 20
"""Of a commit: the newest. Each costs a call to GitHub in every report."""

Level = Literal["notice", "warning", "failure"]


@dataclass(frozen=True)
class Annotation:
    path: str
    start_line: int
    end_line: int
    annotation_level: Level
    title: str
    message: str


@dataclass(frozen=True)
class CheckRun:
    conclusion: Conclusion | Literal["cancelled"]
    title: str
    summary: str
    annotations: tuple[Annotation, ...] = ()
    details_url: str | None = None
    judged: bool = True
    """False where nothing of the change was judged: that takes back no failure, not even its own run's."""
    settled: bool = False
    """Neutral, and yet it takes an earlier failure back: all that is slower was accepted, and nothing is in doubt."""
    held: bool = False
    """It asks for action because of a doubt, which takes no failure back and passes for no run that says nothing."""

    @property
    def shown_title(self) -> str:
        return visible(self.title, 200)

    @property
    def state(self) -> str:
        return "accepted" if self.settled else "held" if self.held else ""


_EXTERNAL = re.compile(r"kernelgate:(\d{1,18})\.(\d{1,6})(?::(\d{1,18})\.(\d{1,6}))?(?::(?P<state>accepted|held))?")


@dataclass(frozen=True)
class OwnCheck:
    told: Order
    """The run that made it, by its beginning or its end."""
    judged: Order
    """The run whose records it is about: the same, unless that one was to measure nothing."""
    run: ShownRun
    state: str = ""
    """`accepted`: what is slower was, and nothing is in doubt; `held`: something is."""

    @property
    def waits(self) -> bool:
        return bool(self.run.status != "completed")

    @property
    def said(self) -> str | None:
        """The conclusion; None where it waits for one, or another took its place."""
        ended = not self.waits and self.run.conclusion != "cancelled"
        return (self.state or self.run.conclusion) if ended else None


def put_check(bot: Bot, check: CheckRun, stamp: Stamp, told: Order | None = None) -> Posted:
    """The commit has one check run of this run with the verdict and its annotations. `told`: the run that ended, where
    `stamp` is of the one before it, whose records are judged."""
    of = told or stamp.order
    outcome = "unchanged"

    def step() -> Posted | None:
        nonlocal outcome
        shown = _shown(bot, stamp)
        if any(one.told > of if one.waits else one.judged > stamp.order for one in shown):
            return Posted("left alone: a newer run of the same commit has its own", left=True)
        if _is_cleared(bot, shown, of):
            return None
        mine = [one for one in shown if one.told == of] or [one for one in shown if one.judged == stamp.order]
        own = mine[-1] if mine else None
        weak = check.held or (check.conclusion == "neutral" and not check.settled)
        stands = _standing_verdict(shown, check, stamp) if weak else None
        if stands and (own is None or not own.waits):
            return Posted("left alone: what an earlier run of the same commit found blocks still", left=True)
        if own is None:
            outcome = "created"
            facts = _ended(check) | {"external_id": _external(of, stamp.order, check.state)}
            address = check.details_url or NotSet
            bot.repository.create_check_run(CHECK_NAME, stamp.head_sha, details_url=address, **facts)
            return None
        wanted, still = check, ""
        if stands:
            # The latest such verdict once more, in the words that it has.
            held, last = stands.said == "held", stands.run.output
            words: dict[str, Any] = {"title": last.title or "", "summary": last.summary or "", "annotations": ()}
            wanted = replace(check, conclusion="action_required" if held else "failure", held=held, **words)
            still = ": what an earlier run found blocks still"
        change, has = _ended(wanted), own.run.output
        if has.annotations_count:  # GitHub adds what is sent to those that are there
            del change["output"]["annotations"]
        same = (own.run.status, own.run.conclusion, has.title) == ("completed", wanted.conclusion, wanted.shown_title)
        if not same or not same_text(has.summary, wanted.summary) or change["output"].get("annotations"):
            outcome = outcome if outcome == "created" else "edited"
            own.run.edit(**change, external_id=_external(own.told, stamp.order, wanted.state))
        return Posted(outcome + still, left=bool(stands))

    return until_done("check run", step, bot)


def begin_check(bot: Bot, stamp: Stamp, details_url: str, awaited: tuple[str, str]) -> Posted:
    """From now on the commit has a check run that waits for this run's verdict. `awaited`: title and summary."""
    output: dict[str, Any] = dict(zip(("title", "summary"), awaited, strict=True))

    def step() -> Posted | None:
        shown = _shown(bot, stamp)
        own = next((one.run for one in shown if one.told == stamp.order and one.waits), None)
        if own is not None and own.output.title != awaited[0]:
            own.edit(output=output)
            return None
        if any(one.told >= stamp.order for one in shown):
            return None if _is_cleared(bot, shown, stamp.order) else Posted("there")
        facts: dict[str, Any] = {"external_id": _external(stamp.order, stamp.order), "details_url": details_url}
        bot.repository.create_check_run(CHECK_NAME, stamp.head_sha, status="in_progress", output=output, **facts)
        return None

    return until_done("check run", step, bot)


def end_check(bot: Bot, check: CheckRun | None, stamp: Stamp, told: Order) -> Posted:
    """The check run that waits for the run `told` says `check`; None: that run ended without anything to say, and it
    waits for the run of the stamp."""
    change = _ended(check) if check is not None else {"external_id": _external(stamp.order, stamp.order)}

    def step() -> Posted:
        waiting = [one.run for one in _shown(bot, stamp) if one.told == told and one.waits]
        for run in waiting:
            run.edit(**change)
        return Posted("edited" if waiting else "unchanged")

    return until_done("check run", step, bot)


def _shown(bot: Bot, stamp: Stamp) -> list[OwnCheck]:
    """The commit's check runs of ours, oldest first: another App's is none, whatever it says."""
    shown = []
    for run in _ours(bot, stamp.head_sha, CHECK_NAME):
        if found := _EXTERNAL.fullmatch(run.external_id or ""):
            told = int(found[1]), int(found[2])
            judged = (int(found[3]), int(found[4])) if found[3] else told
            shown.append(OwnCheck(told, judged, run, found["state"] or ""))
    return shown


def _ours(bot: Bot, head_sha: str, name: str) -> list[ShownRun]:
    """Those of the App that the token is of, the oldest first: another one's may have any name."""
    runs = bot.repository.get_commit(head_sha).get_check_runs(check_name=name, filter="all")
    ours = [run for run in runs if run.app is not None and f"{run.app.slug}[bot]" == bot.login]
    return sorted(ours, key=lambda run: run.id)


def shown_verdict(bot: Bot, head_sha: str) -> OwnCheck | None:
    """The check run that shows the commit's verdict, or waits for it; None where the commit has none."""
    shown = patiently("check run", lambda: _shown(bot, Stamp(head_sha, 0, 0)), bot)
    return next((one for one in reversed(shown) if one.waits or one.said is not None), None)


def _is_cleared(bot: Bot, shown: Sequence[OwnCheck], of: Order) -> bool:
    """Takes one check run away that stands for nothing any more: whether there was one. Of two of one run, which two
    reports made at once, the last stays, which GitHub shows. One that waits for a run that was replaced ends."""
    for number, one in enumerate(shown):
        if one.told in [later.told for later in shown[number + 1 :]]:
            bot.step.log("check run: there were two of one run; the older one is put aside")
            one.run.edit(name=f"{CHECK_NAME} (twice)", status="completed", conclusion="cancelled")
            return True
        if one.told < of and one.waits:
            one.run.edit(status="completed", conclusion="cancelled", output=_REPLACED)
            return True
    return False


def _ended(check: CheckRun) -> dict[str, Any]:
    """What GitHub is sent of it."""
    notes = [
        asdict(note) | {"title": visible(note.title, 200), "message": visible(note.message, 2000)}
        for note in check.annotations[:MAX_ANNOTATIONS]
    ]
    output = {"title": check.shown_title, "summary": check.summary, "annotations": notes}
    return {"status": "completed", "conclusion": check.conclusion, "output": output}


def _external(told: Order, judged: Order, state: str = "") -> str:
    parts = [f"{told[0]}.{told[1]}", "" if judged == told else f"{judged[0]}.{judged[1]}", state]
    return ":".join(["kernelgate", *filter(None, parts)])


def _standing_verdict(shown: Sequence[OwnCheck], check: CheckRun, stamp: Stamp) -> OwnCheck | None:
    """The latest verdict among these check runs, where it is one that `check` may not hide: a failure, or a doubt where
    `check` says nothing of the change and holds nothing itself. What has no verdict took none back: a measurement can
    always be made to end without one, such as by a kernel that hangs the second time."""
    verdicts = {"success", "accepted", "failure"} | (set() if check.judged or check.held else {"held"})
    latest = {one.judged: one for one in shown if one.said is not None}
    earlier = (one for order, one in latest.items() if order < stamp.order or not check.judged)
    last = max((one for one in earlier if one.said in verdicts), key=lambda one: one.judged, default=None)
    return last if last is not None and last.said in ("failure", "held") else None


class KeptAcceptance(Model, validate_by_name=True, validate_by_alias=True):
    schema_: Annotated[Literal["kernelgate.accepted/1"], Field(alias="schema")] = "kernelgate.accepted/1"
    comment: int
    digest: str
    by: str
    reason: str
    base_sha: str
    cases: tuple[CaseKey, ...]
    """One without an id is all cases of its card together."""


def digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def keep(bot: Bot, kept: KeptAcceptance, head_sha: str) -> None:
    mark = f"{ACCEPTED_NAME}:{kept.comment}"
    readable = kept.model_dump_json(by_alias=True).replace("`", "\\u0060")
    who: Line = (Code(f"@{kept.by}"), " accepts, compared with ", Code(kept.base_sha[:7]), ": ")
    summary = render.markdown_line((*who, *remarks.listed(kept.cases, {}), ". Reason: ", visible(kept.reason)))
    title = visible(f"{formatting.counted(len(kept.cases), 'regression')} accepted by {kept.by}", 200)

    def step() -> Posted | None:
        if any(run.external_id == mark for run in _ours(bot, head_sha, ACCEPTED_NAME)):
            return Posted("there")
        output = {"title": title, "summary": summary, "text": f"```json\n{readable}\n```"}
        ended: dict[str, Any] = {"status": "completed", "conclusion": "neutral", "output": output}
        bot.repository.create_check_run(ACCEPTED_NAME, head_sha, external_id=mark, **ended)
        return None

    bot.step.log(f"acceptance: {until_done('acceptance', step, bot).outcome}")


def standing(bot: Bot, number: int, head_sha: str) -> tuple[KeptAcceptance, ...]:
    """What was accepted of this commit, as far as its comments still stand as they were, the oldest first."""
    runs = patiently("acceptances", lambda: _ours(bot, head_sha, ACCEPTED_NAME), bot)
    standing = []
    for kept in filter(None, map(_read, runs[-MAX_KEPT:])):
        body = comment_body(bot, number, kept.comment, kept.by)
        if body is not None and digest(body) == kept.digest:
            standing.append(kept)
        else:
            gone = f"the comment {kept.comment} of {kept.by} is gone or was edited, so it counts no more"
            bot.step.log(f"acceptance: {gone}")
    return tuple(standing)


def comment_body(bot: Bot, number: int, comment: int, by: str) -> str | None:
    """The comment as it is now; None where it is gone, or another one's."""

    def step() -> str | None:
        found = bot.repository.get_issue(number).get_comment(comment)
        body, user = found.body, found.user
        return (body or "") if user is not None and user.login == by else None

    return unless_gone("comment", step, bot)


def _read(run: ShownRun) -> KeptAcceptance | None:
    found = re.fullmatch(r"```json\n([^`]*)\n```", (run.output.text or "").replace("\r\n", "\n").strip())
    try:
        return KeptAcceptance.model_validate_json(found[1]) if found else None
    except ValidationError:
        return None
