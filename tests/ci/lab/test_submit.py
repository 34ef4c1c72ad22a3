"""A session's report for experts: one issue or comment, whatever happens on the way, in which no text of a log acts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from kernelgate.ci.commands.cli import run as kernelgate
from kernelgate.ci.github import upsert
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.client import GitHubError
from kernelgate.ci.lab import report
from kernelgate.ci.lab.log import Closed, Event, PatternUse, SessionNote
from kernelgate.ci.lab.review import LABEL, SessionForReview, post, submit
from kernelgate.ci.policy.policy import Policy
from tests.ci.answered import validated
from tests.ci.desk import Desk
from tests.ci.lab import session_events as made
from tests.fakes.github_server import Json

COMMIT = "c" * 40
PLACE = ".ci/sessions/one"
EVENTS: tuple[Event, ...] = (
    made.opened(),
    *made.passed(0.8),
    made.tried(1, -5, action="swizzle", bottleneck="l2"),
    SessionNote(said="is it the cache?", kind="question"),
)
LAST = upsert.issue_line("session name=one", "open")


def given(*more: Event, events: tuple[Event, ...] = EVENTS) -> SessionForReview:
    text = report.posted((*events, *more), Policy(), made.clock(20))
    files = {f"{PLACE}/log.jsonl": b"{}\n", f"{PLACE}/gains.svg": b"<svg/>"}
    return SessionForReview("one", "faster", text, COMMIT, files)


def posted(desk: Desk, session: SessionForReview | None = None) -> Json:
    """The one issue there is, after the session was submitted."""
    submit(desk.bot, session or given(), None)
    [issue] = desk.github.issues.values()
    return issue


def test_an_issue_has_report_questions_and_how_to_answer(desk: Desk) -> None:
    issue = posted(desk)
    assert issue["title"] == "Review of the session one: faster"
    assert [label["name"] for label in issue["labels"]] == [LABEL]
    body = issue["body"]
    assert "try 1: wider: 5% faster" in body
    assert "## Questions\n\n- is it the cache?" in body
    assert "- try 1: swizzle, l2" in body
    assert "/kernelgate pattern NAME: what to do, and when" in body
    assert "are left out" in body, "nothing is pushed"
    assert body.splitlines()[-1] == LAST


def test_what_is_pushed_is_linked_at_its_commit_and_else_is_not(desk: Desk) -> None:
    session = given()
    for path, content in session.files.items():
        desk.github.files[COMMIT, path] = content
    address = f"https://github.com/octo-org/kernels/blob/{COMMIT}/{PLACE}/gains.svg"
    assert address in posted(desk, session)["body"]
    desk.github.files[COMMIT, f"{PLACE}/log.jsonl"] = b"an older one\n"
    assert address not in posted(desk, session)["body"]


def test_submitted_again_the_issue_changes_and_nothing_is_added(desk: Desk) -> None:
    posted(desk)
    before = len(desk.github.writes())
    posted(desk)
    assert desk.github.writes()[before:] == []
    assert "another idea" in posted(desk, given(SessionNote(said="another idea", kind="learnt")))["body"]
    submit(desk.bot, replace(given(), name="two"), None)
    assert len(desk.github.issues) == 2, "another session"


def test_somebody_elses_issue_with_the_same_last_line_is_none_of_ours(desk: Desk) -> None:
    planted = posted(desk) | {"number": 99, "user": desk.github._user("stranger"), "title": "planted"}
    desk.github.issues = {99: planted}
    submit(desk.bot, given(), None)
    assert len(desk.github.issues) == 2
    assert desk.github.issues[99] == planted


def test_an_issue_that_a_person_closed_is_left_and_that_is_said(desk: Desk) -> None:
    posted(desk)["state"] = "closed"
    with pytest.raises(GitHubError, match="a person has closed it; open it again to submit one once more"):
        submit(desk.bot, given(), None)


def test_on_a_pull_request_each_session_has_one_comment(desk: Desk) -> None:
    number = desk.github.open_pull(head_sha="a" * 40, state="closed").number
    for session in (given(), given(), replace(given(), name="two")):
        submit(desk.bot, session, number)
    assert len(desk.github.bodies(number)) == 2
    assert desk.github.issues == {}


def test_a_person_submits_in_their_own_name(desk: Desk) -> None:
    desk.github.login, desk.github.login_type = "ada", "User"
    own = {name: value for name, value in desk.github.environment.items() if name != "GITHUB_ACTIONS"}
    post(Step(own), given(), None)
    [issue] = desk.github.issues.values()
    assert issue["user"]["login"] == "ada"
    desk.github.login_type = "Bot"
    with pytest.raises(GitHubError, match="set KERNELGATE_BOT to the name that the token posts as"):
        post(Step(own), given(), None)


HOSTILE = "a`|@octo-org/all #1 ::set-output x::y <!-- x --> <img src=x>\n\n# h\n---\n```\n[x](http://evil.example)"


def test_hostile_text_of_a_log_stays_text(desk: Desk) -> None:
    events = (
        made.opened(objective=HOSTILE, hypothesis=HOSTILE, card=HOSTILE, cases=(HOSTILE,), gpu=HOSTILE),
        made.gate("build", 1, passed=False, said=HOSTILE),
        made.gate("environment", 1, said=HOSTILE),
        made.tried(1, -5, what=HOSTILE, why=HOSTILE, cause=HOSTILE, said=HOSTILE, action=HOSTILE, variables=(HOSTILE,)),
        made.tried(2, 0, outcomes=(), failed="build", said=HOSTILE),
        *(SessionNote(said=HOSTILE, kind=kind) for kind in ("believed", "learnt", "mistake", "question")),
        PatternUse(pattern=HOSTILE, how="learnt", said=HOSTILE),
        Closed(at=made.clock(30), why="done", said=HOSTILE),
    )
    issue = posted(desk, replace(given(events=events), objective=HOSTILE))
    markdown = MarkdownIt().enable("table").parse(issue["body"])
    every = [one for block in markdown for one in (block, *(block.children or ()))]
    assert [one.content.strip() for one in every if one.type.startswith("html")] == [LAST]
    assert not [one for one in every if one.type in ("link_open", "image", "hr")]
    plain = " ".join(one.content for one in every if one.type == "text")
    assert not any(mark in plain for mark in ("@", "<", "#1", "::", "http"))
    headings = [every[at + 1].content for at, one in enumerate(every) if one.type == "heading_open"]
    assert [text for text in headings[1:] if text == "h"] == []
    assert len(issue["title"]) <= upsert.MAX_TITLE


@pytest.mark.parametrize("text", ["so it was " * 100, "`@a`" * 200])
def test_a_long_log_fits_and_what_is_left_out_is_counted(desk: Desk, text: str) -> None:
    tries = tuple(made.tried(number, -1, what=text, why=text) for number in range(1, 301))
    body = posted(desk, given(events=(made.opened(), *tries, SessionNote(said=text, kind="question"))))["body"]
    assert "more, which the log has" in body
    assert "/kernelgate pattern NAME" in body


def test_the_verb(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(made.checkout(tmp_path))
    for name in ("GITHUB_TOKEN", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    assert kernelgate(["session", "submit"]) == 64
    assert "GITHUB_TOKEN is not set: set it to submit one, or print the report with" in capsys.readouterr().err
    assert kernelgate(["session", "submit", "--dry-run"]) == 0
    assert "## Questions" in capsys.readouterr().out
    monkeypatch.setenv("GITHUB_TOKEN", desk.github.token)
    assert kernelgate(["session", "submit"]) == 64
    assert "GITHUB_REPOSITORY, such as owner/name, is not set" in capsys.readouterr().err
    for name, value in desk.bot.step.environment.items():
        monkeypatch.setenv(name, value)
    assert kernelgate(["session", "submit"]) == 0
    assert len(desk.github.issues) == 1
    assert "issue 1 created in octo-org/kernels" in capsys.readouterr().err
    assert kernelgate(["session", "submit", "--json"]) == 0
    shown = validated("session submit", capsys.readouterr().out)
    assert shown["address"] == "https://github.com/octo-org/kernels/issues/1"
    assert "## Questions" in shown["text"]


def test_a_label_that_github_drops_leaves_no_issue_that_is_never_found(desk: Desk) -> None:
    desk.github.drops_labels = True
    with pytest.raises(GitHubError, match="may not set the label"):
        submit(desk.bot, given(), None)
    assert [one["state"] for one in desk.github.issues.values()] == ["closed"]
