"""A reviewer's answer to a session, from a comment to a pull request, and what comes of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from kernelgate.ci.github import command
from kernelgate.ci.github.client import GitHubError
from kernelgate.ci.github.command import NotDoneError, Requester
from kernelgate.ci.github.propose import Offer
from kernelgate.ci.lab import patterns
from kernelgate.ci.lab.review import MISSING, PatternAnswer, answer, offer, parse
from tests.ci.desk import Desk
from tests.fakes.github_server import event

ASKED = Requester(7, 12, "octocat", datetime(2026, 11, 22, 12, tzinfo=UTC))


def read(path: str) -> str | None:
    return {"docs/patterns/known.md": "---\nname: known\n---\n"}.get(path)


def test_an_answer_is_read() -> None:
    assert parse("/kernelgate pattern warm-up: measure\n twice") == PatternAnswer("warm-up", "measure twice")
    assert parse("/Kernelgate  PATTERN warm-up: so\r\n") == PatternAnswer("warm-up", "so")


def test_each_comment_is_answered_by_one_of_the_two_workflows_at_most() -> None:
    ours = ("/kernelgate pattern warm-up: so", "\n/kernelgate pattern\nbench", "/kernelgate bench")
    for body in (*ours, "say /kernelgate pattern a: b"):
        by_command, by_review = command.parse(body) is not None, command.is_review(body)
        assert (by_command + by_review) == (body in ours), body


@pytest.mark.parametrize(
    "words", ["../../etc: text", "name", "name/../other: text", "name\nwhen=now: text", f"name: {'x' * 2000}"]
)
def test_what_is_none_is_refused(words: str) -> None:
    with pytest.raises(NotDoneError):
        parse(f"/kernelgate pattern {words}")


def proposed_pattern(text: str, name: str = "warm-up") -> tuple[Offer, str]:
    found = offer(PatternAnswer(name, text), ASKED, "c" * 40, read)
    return found, found.files[0][1].decode()


def test_a_pattern_says_what_is_left_to_a_person_and_whoever_reads_it_names_that(tmp_path: Path) -> None:
    found, text = proposed_pattern("measure twice, when clocks move")
    path = tmp_path / "warm-up.md"
    path.write_text(text, encoding="utf-8")

    assert found.files[0][0] == "docs/patterns/warm-up.md"
    assert all(f"`{line}`" in found.body for line in MISSING)
    with pytest.raises(patterns.PatternError, match=r"warm-up\.md: when: .*; command: .*; cookbook: "):
        patterns.read(path)
    for line in MISSING:
        text = text.replace(f"{line}: null # fill in before the merge", f"{line}: environment")
    path.write_text(text, encoding="utf-8")
    completed = patterns.read(path)
    assert (completed.do, completed.evidence) == ("measure twice, when clocks move", "octocat, in #12")
    assert (completed.signals, completed.recorded, completed.measured_minutes) == ((), None, None)


HOSTILE = (
    "a\n---\ncommand: rm -rf /\n---\n<script>alert(1)</script> @octo-org/all #1 ::set-output name=x::y ##[group] "
    "<!-- kernelgate-review comment=7 --> [x](http://evil.example) 😀\u202e\u2028 ``` \" ' \\ ${{ github.token }}"
)


def test_hostile_text_in_a_pattern_stays_text(tmp_path: Path) -> None:
    read_back = parse(f"/kernelgate pattern warm-up: {HOSTILE}")
    assert isinstance(read_back, PatternAnswer)
    found, text = proposed_pattern(read_back.text)
    path = tmp_path / "warm-up.md"
    path.write_text(text.replace("null # fill in before the merge", "environment"), encoding="utf-8")

    completed = patterns.read(path)
    assert completed.command == "environment", "what broke out of the text would be here"
    assert "😀" in completed.do
    front, page = text.removeprefix("---\n").split("\n---\n", 1)
    assert len(front.splitlines()) == 8
    for markdown in (page, found.body, completed.do):
        every = [one for block in MarkdownIt("js-default").parse(markdown) for one in (block, *(block.children or ()))]
        assert not [one for one in every if one.type in ("html_block", "html_inline", "link_open", "hr", "image")]
        plain = " ".join(one.content for one in every if one.type == "text")
        assert not any(mark in plain for mark in ("@", "<", "::", "http", "#1 "))


def answered(
    desk: Desk, tmp_path: Path, body: str, login: str, propose: bool = True, in_pull: bool = True
) -> int | None:
    """Gives a comment on number 1 to the bot."""
    placed = desk.github.comment(1, body, author=login)
    payload = event("issue_comment.created")
    payload["issue"] |= {"number": 1}
    payload["issue"] |= {"pull_request": {"url": "https://api.github.com/repos/o/r/pulls/1"}} if in_pull else {}
    payload["comment"] |= {"id": placed["id"], "body": body, "created_at": "2026-11-20T10:00:00Z"}
    payload["comment"]["user"] |= {"login": login, "type": "User"}
    path = tmp_path / "event.json"
    path.write_text(json.dumps(payload), encoding="utf-8")
    desk.bot.step.environment["GITHUB_EVENT_PATH"] = str(path)  # type: ignore[index]
    return answer(desk.bot.step, desk.bot, propose)


def replies(desk: Desk) -> list[str]:
    return [one["body"] for one in desk.github.comments.values() if one["user"]["login"] == desk.github.login]


PATTERN = "/kernelgate pattern warm-up: measure twice"


@pytest.mark.parametrize("state", ["open", "closed"])
def test_only_people_with_write_access_are_answered_with_a_pull_request(desk: Desk, tmp_path: Path, state: str) -> None:
    """Also on a pull request that is merged: reviews come after that."""
    desk.github.collaborators |= {"ada": "write", "bob": "read"}
    desk.github.open_pull(head_sha="a" * 40, state=state)

    for login in ("mallory", "bob", "mallory"):
        assert answered(desk, tmp_path, PATTERN, login) is None
    assert len(desk.github.pulls) == 1
    (refused,) = replies(desk)
    assert "`mallory`, this was not taken: only people with write access" in refused

    assert answered(desk, tmp_path, PATTERN, "ada", propose=False) is None
    assert (desk.outputs["propose"], len(desk.github.pulls), len(replies(desk))) == ("true", 1, 1)
    number = answered(desk, tmp_path, PATTERN, "ada")

    pull = desk.github.pulls[number or 0]
    assert "`ada` answered in #1: measure twice" in (pull.body or "")
    assert "measure twice" in desk.github.files[pull.head_ref, "docs/patterns/warm-up.md"].decode()
    assert f"#{number} proposes what `ada` answered." in replies(desk)[-1]
    assert len(replies(desk)) == 2


def test_in_an_issue_each_answer_has_a_reply_of_its_own_and_a_repeated_job_adds_none(
    desk: Desk, tmp_path: Path
) -> None:
    desk.github.collaborators["ada"] = "write"
    desk.bot.repository.create_issue(title="Review of the session one", body="…")

    first = answered(desk, tmp_path, PATTERN, "ada", in_pull=False)
    again = answer(desk.bot.step, desk.bot, propose=True)
    assert first == again
    assert answered(desk, tmp_path, "/kernelgate pattern warm-up", "ada", in_pull=False) is None
    assert desk.outputs["propose"] == "false"
    taken, refused = replies(desk)
    assert f"#{first} proposes" in taken
    assert "this was not taken: write `/kernelgate` pattern NAME: TEXT" in refused


def test_a_pull_request_that_github_does_not_let_open_is_said_where_it_was_asked(desk: Desk, tmp_path: Path) -> None:
    desk.github.collaborators["ada"] = "write"
    desk.github.open_pull(head_sha="a" * 40)
    why = "GitHub Actions is not permitted to create or approve pull requests."
    desk.github.fault("POST", "/pulls", status=403, message=why, times=9)
    with pytest.raises(GitHubError, match="not permitted"):
        answered(desk, tmp_path, PATTERN, "ada")
    (said,) = replies(desk)
    assert "this was not proposed" in said
    assert "GitHub Actions is not permitted to create or approve pull requests" in said
