"""`/kernelgate accept`: who takes a regression as it is, what they can take, and what ends it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench.record import Run
from kernelgate.ci.github import accept, assemble, command
from kernelgate.ci.github.acceptances import NAME
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.assemble import Trusted
from kernelgate.ci.github.client import connect
from kernelgate.ci.github.publish import post
from kernelgate.ci.judge.policy import Policy
from tests.attacks.honest import BASE, CARD, HEAD, PLAN, PullRequestRuns, Shown, changed, judged_once, measured
from tests.ci.desk import Desk
from tests.fakes.github_server import Json

REGRESSED, ACCEPTED = "performance: regressed", "performance: accepted"
ASKED_AT = "2026-11-20T10:00:00Z"
ONE = "/kernelgate accept m1024 because exact rounding costs it"
VERDICT = "kernelgate verdict"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A record that was judged before is not judged again."""
    monkeypatch.setattr(assemble, "judge", judged_once)
    return tmp_path


@pytest.fixture
def pull(desk: Desk, folder: Path) -> PullRequestRuns:
    """A pull request that the second case blocks."""
    desk.github.collaborators |= {"ada": "write", "mallory": "read"}
    found = PullRequestRuns(desk, folder)
    assert found.run([("l4", slower())]).conclusion == "failure"
    return found


def slower(worse: float = 0.1) -> bytes:
    return changed(measured(0.0, worse=worse))


def said(pull: PullRequestRuns, body: str = ONE, login: str = "ada", at: str = ASKED_AT, **comment: Any) -> bool:
    """A comment, and what answer-command.yml does with it; whether something was accepted."""
    github, event_file = pull.desk.github, pull.folder / "event.json"
    written = github.comment(1, body, author=login)
    user = {"login": login, "type": "User"}
    shown = {"id": written["id"], "body": body, "created_at": at, "user": user} | comment
    event = {"action": "created", "comment": shown, "issue": {"number": 1, "pull_request": {"url": "x"}}}
    event_file.write_text(json.dumps(event), "utf-8")
    pull.desk.outputs_file.unlink(missing_ok=True)
    step = Step({**pull.desk.bot.step.environment, "GITHUB_EVENT_PATH": str(event_file)})
    bot = connect(step, sleep=pull.desk.slept.append, pause_s=0)
    try:
        command.answer(step, bot, Policy().measure)
        if pull.desk.outputs.get("accept") != "true":
            return False
        handed = pull.desk.outputs
        subject = Run(head_sha=handed["head_sha"], base_sha=handed["base_sha"], pull_request=1)
        into, trusted = pull.folder / f"accept{written['id']}", Trusted(pull.plan)
        if not accept.accept(bot, subject, into, Policy(), trusted):
            return False
        assert post(bot, into, Policy(), trusted=trusted) == 0
    finally:
        bot.repository.requester.close()
    return True


def reply(pull: PullRequestRuns) -> str:
    """The bot's answer to the last command."""
    return next(body for body in pull.desk.github.bodies(1) if "topic=command" in body).split("\n<!--")[0]


def verdict(pull: PullRequestRuns) -> Shown:
    """What a required check goes by."""
    checks = [check for _, check in sorted(pull.desk.github.checks.items()) if check["name"] == VERDICT]
    comment = "\n".join(body for body in pull.desk.github.bodies(1) if "topic=verdict" in body)
    return Shown(checks[-1]["conclusion"], tuple(sorted(pull.desk.github.pulls[1].labels)), comment)


def kept(pull: PullRequestRuns) -> list[Json]:
    return [check for check in pull.desk.github.checks.values() if check["name"] == NAME]


def edited(pull: PullRequestRuns) -> Shown:
    """The description is edited: the same records are judged again."""
    run = pull.desk.github.add_run(pull.desk.github.pulls[1])
    pull.desk.github.add_job(run, "plan / plan", "success")
    from kernelgate.ci.github.fetch import fetch

    into = pull.folder / f"edited{run['id']}"
    fetch(pull.desk.bot, run["id"], into)
    assert post(pull.desk.bot, into, Policy(), trusted=Trusted(pull.plan)) == 0
    return verdict(pull)


# What it does --------------------------------------------------------------------------------------------------------


def test_an_accepted_case_blocks_no_more(pull: PullRequestRuns) -> None:
    assert said(pull)
    found = verdict(pull)
    assert (found.conclusion, found.labels) == ("neutral", (ACCEPTED, REGRESSED))
    assert found.comment.startswith("### ⚠️ Slower, and accepted: ")
    assert "Accepted by `@ada`, until the next push: " in found.comment
    assert "Reason: exact rounding costs it" in found.comment
    assert reply(pull) == (
        "`@ada` accepted of `aaaaaaa`: `norm/m1024`. This ends with the next push, or with another base."
    )
    assert [content for _, content in pull.desk.github.reactions] == ["rocket"]
    [check] = kept(pull)
    assert (check["head_sha"], check["conclusion"]) == (HEAD, "neutral")
    assert check["output"]["title"] == "1 regression accepted by ada"
