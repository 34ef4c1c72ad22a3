"""Events as GitHub sends them, with what a stranger may choose of them: names, texts, authors, branches."""

from __future__ import annotations

from typing import Any

import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.github.command import parse
from kernelgate.ci.github.plan import GROUP, admit, plan, queued_pull
from kernelgate.ci.policy.policy import Measure
from tests.ci.desk import Desk
from tests.ci.report_examples import BASE_SHA, HEAD_SHA
from tests.fakes.github_server import event


def commanded(desk: Desk, locked: bool = False, **comment: Any) -> dict[str, str]:
    """The outputs of a maintainer's command, on a pull request that was pushed to long before."""
    desk.github.open_pull(number=1, head_sha=HEAD_SHA, base_sha=BASE_SHA, locked=locked)
    desk.github.collaborators["maintainer"] = "write"
    return desk.asked(login="maintainer", **comment)


LOOK_ALIKE = {
    "a fullwidth slash": "／kernelgate bench",
    "a Cyrillic e": "/kеrnelgate bench",
    "a zero-width space": "/\u200bkernelgate bench",
    "a soft hyphen": "/kernel\u00adgate bench",
    "right to left": "\u202e/kernelgate bench",
    "tag characters": "/kernelgate\U000e0062\U000e0065",
    "in a comment": "<!-- /kernelgate bench -->",
    "in a list": "- /kernelgate bench",
    "quoted by an e-mail": "On Friday Ada wrote:\n> /kernelgate bench",
    "behind a line separator": "thanks\u2028/kernelgate bench",
    "a path": "/kernelgate/bench",
}


@pytest.mark.parametrize("how", LOOK_ALIKE)
def test_what_looks_like_a_command_is_none(desk: Desk, how: str) -> None:
    assert parse(LOOK_ALIKE[how]) is None
    assert commanded(desk, body=LOOK_ALIKE[how]) == {"run": "false"}
    assert desk.github.reactions == []
    assert desk.replies == []


CASES = {
    "a no-break space": "/kernelgate bench a\u00a0b",
    "a homoglyph": "/kernelgate bench s16_b1_h1_d64_fр16",
    "an option": "/kernelgate bench --processes=1",
    "an expression": "/kernelgate bench ${{secrets.X}}",
    "an output": "/kernelgate bench a%0Abase_sha=x",
    "an order to the runner": "/kernelgate bench ::set-output",
    "too long": f"/kernelgate bench {'a' * 200}",
}


@pytest.mark.parametrize("how", CASES)
def test_a_case_of_other_characters_than_ids_have_is_refused(
    desk: Desk, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert commanded(desk, body=CASES[how]) == {"run": "false"}
    [reply] = desk.replies
    assert "not a case id" in reply or "no case" in reply
    assert "::set-output" not in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["bi\u017fect", "pro\ufb01le", "ben\u0441h", "b\u200bench"])
def test_a_verb_of_other_letters_is_not_known(desk: Desk, verb: str) -> None:
    """A person with write access may have copied it from a stranger's text, and sees another word than is read."""
    assert commanded(desk, body=f"/kernelgate {verb}") == {"run": "false"}
    [reply] = desk.replies
    assert "and then bench, profile or fuzz" in reply


AUTHORS: dict[str, dict[str, Any]] = {
    "a bot": {"user": {"login": "maintainer", "type": "Bot"}},
    "nobody": {"user": None},
    "an App": {"performed_via_github_app": {"id": 1}},
    "an App of another form": {"performed_via_github_app": "x"},
}


@pytest.mark.parametrize("how", AUTHORS)
def test_a_comment_of_no_person_commands_nothing(desk: Desk, how: str) -> None:
    """An App has perhaps a person's token, and read its command somewhere."""
    assert commanded(desk, **AUTHORS[how]) == {"run": "false"}
    assert desk.github.reactions == []


def test_a_locked_conversation_is_commanded_by_those_who_may_write(desk: Desk) -> None:
    """GitHub lets nobody else comment there."""
    outputs = commanded(desk, locked=True)
    assert (outputs["run"], outputs["head_sha"]) == ("true", HEAD_SHA)
    assert "does `bench`" in desk.summary


LOGINS = ("maıntainer", "maintainer\u200b", "../maintainer", "ghost")


@pytest.mark.parametrize("login", LOGINS)
def test_a_login_that_looks_like_a_maintainers_has_no_rights(desk: Desk, login: str) -> None:
    """What the comment says of its author's association is not read."""
    desk.github.open_pull(number=1, head_sha=HEAD_SHA, base_sha=BASE_SHA)
    desk.github.collaborators["maintainer"] = "write"
    user = {"login": login, "type": "User"}
    assert desk.asked(user=user, author_association="OWNER") == {"run": "false"}
    assert all("people with write access" in one for one in desk.replies)


@pytest.mark.parametrize("action", ["edited", "deleted", "pinned", None])
def test_a_comment_that_is_not_new_commands_nothing(desk: Desk, action: str | None) -> None:
    assert commanded(desk, event={"action": action}) == {"run": "false"}


def test_a_comment_on_an_issue_that_says_it_is_a_pull_request_commands_nothing(desk: Desk) -> None:
    desk.github.collaborators["maintainer"] = "write"
    payload = {"issue": {"number": 7, "pull_request": {"url": "x"}}}
    with pytest.raises(KernelgateError, match="404"):
        desk.asked(login="maintainer", event=payload)
    assert "run" not in desk.outputs or desk.outputs["run"] == "false"


BRANCHES = (
    "$(id)",
    "a b",
    "a%26state=open",
    "-o",
    "mаin",
    "${{github.token}}",
    "gh-readonly-queue/main/pr-1-" + "a" * 40,
)


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_branch_of_any_name_is_planned_as_its_commit(desk: Desk, branch: str) -> None:
    desk.github.open_pull(number=1, head_sha=HEAD_SHA, base_sha=BASE_SHA, files=[{"filename": "csrc/k.cu"}])
    payload = event("pull_request.synchronize")
    payload["pull_request"] |= {"number": 1}
    payload["pull_request"]["head"] |= {"sha": HEAD_SHA, "ref": branch, "label": f"ada:{branch}"}
    desk.told(payload)
    found = plan(desk.bot.step, desk.bot, Measure())
    assert (found.run.head_sha, found.run.base_sha, found.run.pull_request) == (HEAD_SHA, BASE_SHA, 1)
    assert branch not in found.reason


QUEUES = (
    "refs/heads/gh-readonly-queue/main/pr-1-" + "g" * 40,
    "refs/heads/gh-readonly-queue/main/pr-1-" + "a" * 40 + "\n",
    "refs/heads/gh-readonly-queue/main/pr-\uff11-" + "a" * 40,
    "refs/tags/gh-readonly-queue/main/pr-1-" + "a" * 40,
    "refs/heads/gh-readonly-queue/main/pr-9999999999-" + "a" * 40,
)


@pytest.mark.parametrize("ref", QUEUES)
def test_a_branch_that_is_nearly_a_queues_names_no_pull_request(ref: str) -> None:
    assert queued_pull(ref) is None


@pytest.mark.parametrize("name", ["", "workflow_run", "merge_group ", "Push"])
def test_an_event_that_is_nearly_an_internal_one_admits_nothing(desk: Desk, name: str) -> None:
    desk.bot.step.environment["GITHUB_EVENT_NAME"] = name  # type: ignore[index]
    desk.told({})
    with pytest.raises(KernelgateError):
        admit(desk.bot, desk.bot.step, HEAD_SHA)


@pytest.mark.parametrize("group", [None, {"head_sha": BASE_SHA, "head_ref": "x", "base_sha": BASE_SHA}])
def test_a_merge_group_of_another_commit_admits_nothing(desk: Desk, group: object) -> None:
    desk.bot.step.environment["GITHUB_EVENT_NAME"] = GROUP  # type: ignore[index]
    desk.told({"merge_group": group})
    with pytest.raises(KernelgateError, match="is not the head of the event's merge group"):
        admit(desk.bot, desk.bot.step, HEAD_SHA)
