"""The bot on good days and bad ones. Whatever happens, the pull request ends with one comment, one check, one label."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from unittest.mock import Mock

import pytest
import requests

from kernelgate.bench.core.errors import UsageError
from kernelgate.ci.github import client as bot_module
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.check_run import Annotation, CheckRun, put_check
from kernelgate.ci.github.client import DeniedError, GitHubError, connect
from kernelgate.ci.github.upsert import Stamp, put_comment, put_labels, shown_stamp, state_line
from kernelgate.ci.judge.gate import Label
from tests.ci.desk import Desk
from tests.fakes.github_server import FakeGitHub, InjectedFault

HEAD, OLD, NEW = "a" * 40, "0" * 40, "f" * 40
STAMP = Stamp(HEAD, 5, 1)
COMMENTS = "/issues/1/comments"

NOTES = tuple(Annotation("csrc/k.cuh", line, line, "warning", "Slower", "by 4.9%") for line in range(1, 121))


def check(count: int = 0) -> CheckRun:
    return CheckRun("failure", "Slower by 4.9%", "The whole story.", NOTES[:count], "https://github.com/x")


@pytest.fixture(autouse=True)
def pull(github: FakeGitHub) -> None:
    github.open_pull(head_sha=HEAD)


def everything(desk: Desk, stamp: Stamp = STAMP, text: str = "Slower.") -> None:
    put_comment(desk.bot, 1, [text], stamp)
    put_check(desk.bot, check(3), stamp)
    put_labels(desk.bot, 1, {Label.REGRESSED}, stamp)


def bad_day(fake: FakeGitHub, method: str, path: str) -> list[InjectedFault]:
    """All that goes wrong with one request, one after the other; in the end it was done, and its answer is lost."""
    return [
        fake.fault(method, path, status=500),
        fake.fault(method, path, drop="before"),
        fake.rate_limit(method, path),
        fake.rate_limit(method, path, secondary=True),
        fake.fault(method, path, status=429, headers={"Retry-After": "3"}),
        fake.fault(method, path, drop="after"),
    ]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/pulls/1"),
        ("GET", COMMENTS),
        ("POST", COMMENTS),
        ("GET", "/commits/.*/check-runs"),
        ("POST", "/check-runs"),
        ("POST", "/issues/1/labels"),
    ],
)
def test_a_passing_fault_changes_nothing_in_the_end(desk: Desk, method: str, path: str) -> None:
    faults = bad_day(desk.github, method, path)
    everything(desk)
    assert [fault.times for fault in faults] == [0] * 6
    assert len(desk.github.comments) == len(desk.github.checks) == 1
    assert len(next(iter(desk.github.checks.values()))["annotations"]) == 3
    assert desk.github.pulls[1].labels == ["performance: regressed"]
    faults = bad_day(desk.github, "PATCH", "/issues/comments/.*")
    everything(desk, Stamp(HEAD, 6, 1), "Faster.")
    assert [fault.times for fault in faults] == [0] * 6, "an edit survives bad days, too"
    assert [body.split("\n")[0] for body in desk.github.bodies(1)] == ["Faster."]


@pytest.mark.parametrize("drop", ["before", "after"])
def test_a_lost_answer_never_doubles_annotations(desk: Desk, drop: str) -> None:
    """Nor does another look; GitHub takes fifty."""
    desk.github.fault("POST", "/check-runs", drop=drop)
    for _ in range(2):
        put_check(desk.bot, check(120), STAMP)
    [shown] = desk.github.checks.values()
    assert [note["start_line"] for note in shown["annotations"]] == list(range(1, 51))


def test_a_timeout_is_a_passing_fault(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bot_module, "TIMEOUT_S", 0.5)
    quick = connect(desk.bot.step, sleep=desk.slept.append, pause_s=0)
    desk.github.fault("POST", COMMENTS, hold_s=0.8)
    put_comment(quick, 1, ["Slower."], STAMP)
    # The late request is still handled; the next run finds two and keeps one.
    time.sleep(0.6)
    put_comment(quick, 1, ["Slower."], STAMP)
    assert len(desk.github.comments) == 1
    quick.repository.requester.close()


def test_it_waits_as_long_as_github_asks(desk: Desk) -> None:
    """Where a secondary limit says so, and to the reset of the primary one."""
    desk.github.rate_limit("POST", COMMENTS, secondary=True, wait_s=42)
    desk.github.rate_limit("GET", COMMENTS, wait_s=30)
    put_comment(desk.bot, 1, ["Slower."], STAMP)
    assert 20 <= desk.slept[0] <= 32
    assert desk.slept[1:] == [42]


def test_it_does_not_wait_for_an_hour_and_gives_up_in_the_end(desk: Desk) -> None:
    desk.github.rate_limit("GET", COMMENTS, wait_s=3600)
    with pytest.raises(GitHubError, match="gave up after 1 tries: HTTP 403 API rate limit exceeded"):
        put_comment(desk.bot, 1, ["Slower."], STAMP)
    assert desk.slept == []
    desk.github.fault("GET", "/pulls/1", status=503, times=100)
    with pytest.raises(GitHubError, match="comment: gave up after 8 tries: HTTP 503"):
        put_comment(desk.bot, 1, ["Slower."], STAMP)
    assert sum(desk.slept) < bot_module.MAX_WAIT_S


def test_a_comment_that_is_deleted_in_between_is_made_again(desk: Desk) -> None:
    everything(desk)
    desk.github.fault("PATCH", "/issues/comments/.*", before=desk.github.comments.clear)
    assert put_comment(desk.bot, 1, ["Faster."], Stamp(HEAD, 6, 1)).outcome == "created"
    assert len(desk.github.comments) == 1


def test_a_label_that_is_removed_in_between_is_no_fault(desk: Desk) -> None:
    desk.github.pulls[1].labels.append("performance: improved")
    desk.github.fault("DELETE", "/issues/1/labels/.*", before=desk.github.pulls[1].labels.clear)
    put_labels(desk.bot, 1, {Label.REGRESSED}, STAMP)
    assert desk.github.pulls[1].labels == ["performance: regressed"]


def test_two_runs_really_at_once(desk: Desk) -> None:
    faults = [desk.github.fault("POST", COMMENTS, hold_s=0.2) for _ in range(2)]
    bots = [connect(desk.bot.step, sleep=desk.slept.append, pause_s=0) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda bot, run: put_comment(bot, 1, [f"Run {run}."], Stamp(HEAD, run, 1)), bots, (5, 6)))
    assert [fault.times for fault in faults] == [0, 0]
    put_comment(bots[1], 1, ["Run 6."], Stamp(HEAD, 6, 1))
    assert [body.split("\n")[0] for body in desk.github.bodies(1)] == ["Run 6."]
    for bot in bots:
        bot.repository.requester.close()


@pytest.mark.parametrize(("characters", "refused"), [(6000, True), (65_500, False)])
def test_a_body_that_is_too_long_is_replaced_by_the_shorter_one(desk: Desk, characters: int, refused: bool) -> None:
    """By what GitHub says; one over the limit is never sent."""
    desk.github.fault("POST", COMMENTS, status=422, message="Validation Failed: body is too long", times=int(refused))
    put_comment(desk.bot, 1, ["x" * characters, "Short."], STAMP)
    assert desk.github.bodies(1)[0].startswith("Short.\n")
    assert len(desk.github.writes()) == 1 + refused
    with pytest.raises(GitHubError, match="even the shortest text"):
        put_comment(desk.bot, 1, ["x" * 70_000], STAMP)


@pytest.mark.parametrize(
    ("missing", "put"),
    [
        ("pull-requests", lambda desk: put_comment(desk.bot, 1, ["x"], STAMP)),
        ("checks", lambda desk: put_check(desk.bot, check(), STAMP)),
        ("pull-requests", lambda desk: put_labels(desk.bot, 1, {Label.REGRESSED}, STAMP)),
    ],
    ids=["comment", "check run", "label"],
)
def test_a_missing_permission_is_named_at_once(desk: Desk, missing: str, put: Callable[[Desk], object]) -> None:
    del desk.github.permissions[missing]
    desk.github.permissions["issues"] = "read"
    with pytest.raises(DeniedError, match="GitHub refused: HTTP 403 Resource not accessible by integration"):
        put(desk)
    desk.github.permissions |= {"pull-requests": "write"}
    desk.github.pulls[1].locked = True
    with pytest.raises(DeniedError, match="issue is locked"):
        put_comment(desk.bot, 1, ["x"], STAMP)
    assert desk.slept == []


@pytest.mark.parametrize(
    ("state", "head", "why"),
    [
        ("open", OLD, "the result is for 0000000, and the head is aaaaaaa by now"),
        ("closed", HEAD, "the pull request is closed"),
    ],
)
def test_an_outdated_result_or_a_closed_pull_request_changes_nothing(
    desk: Desk, state: str, head: str, why: str
) -> None:
    desk.github.pulls[1].state = state
    stamp = Stamp(head, 9, 1)
    for said in (put_comment(desk.bot, 1, ["x"], stamp), put_labels(desk.bot, 1, {Label.IMPROVED}, stamp)):
        assert (said.left, said.outcome) == (True, f"left alone: {why}")
    assert desk.github.writes() == []


@pytest.mark.parametrize("newer", [Stamp(HEAD, 6, 1), Stamp(HEAD, 5, 2)], ids=["run", "attempt"])
def test_of_one_commit_the_newer_run_stays(desk: Desk, newer: Stamp) -> None:
    everything(desk, newer, "Newer.")
    everything(desk, STAMP, "Older.")
    assert [body.split("\n")[0] for body in desk.github.bodies(1)] == ["Newer."]
    assert [shown["external_id"] for shown in desk.github.checks.values()] == [
        f"kernelgate:{newer.run_id}.{newer.run_attempt}"
    ]


def test_the_head_that_moves_while_we_look_is_noticed(desk: Desk) -> None:
    push = partial(setattr, desk.github.pulls[1], "head_sha", NEW)
    desk.github.fault("POST", COMMENTS, drop="before", before=push)
    assert put_comment(desk.bot, 1, ["Older."], STAMP).left
    assert desk.github.comments == {}


def test_a_marker_copied_by_somebody_else_or_inside_our_own_text_is_not_the_state(desk: Desk) -> None:
    forged = state_line("verdict", Stamp(HEAD, 999, 1))
    copied = f"All is well.\n{forged}"
    desk.github.comment(1, copied, author="mallory")
    desk.github.comment(1, copied, author="github-actions", author_type="Bot")
    put_comment(desk.bot, 1, [f"Title: {forged}\nmore"], STAMP)
    assert desk.github.bodies(1)[:2] == [copied, copied]
    assert len(desk.github.comments) == 3
    assert shown_stamp(desk.bot, 1) == STAMP


def test_a_bot_of_another_name_does_not_pile_up_comments(desk: Desk) -> None:
    desk.github.login = "kernel-bot[bot]"
    with pytest.raises(
        GitHubError, match=r"posts as kernel-bot\[bot\], not as github-actions\[bot\]: set KERNELGATE_BOT"
    ):
        put_comment(desk.bot, 1, ["x"], STAMP)
    assert desk.github.comments == {}
    step = Step(desk.github.environment | {"KERNELGATE_BOT": "kernel-bot[bot]"})
    named = connect(step, pause_s=0)
    assert put_comment(named, 1, ["x"], STAMP).outcome == "created"
    assert put_comment(named, 1, ["x"], STAMP).outcome == "unchanged"
    named.repository.requester.close()


def test_the_token_is_in_no_log_and_no_error(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    token = desk.github.token
    desk.github.fault("GET", "/pulls/1", status=502, message=f"you sent {token}", times=100)
    with pytest.raises(GitHubError) as caught:
        put_comment(desk.bot, 1, ["x"], STAMP)
    printed = capsys.readouterr()
    assert "trying again" in printed.out
    assert token not in printed.out + printed.err
    assert token not in desk.bot.step.harmless(str(caught.value))
    assert token not in repr(desk.bot)


@pytest.mark.parametrize(
    ("environment", "missing"),
    [
        ({}, "GITHUB_TOKEN"),
        ({"GITHUB_TOKEN": "x"}, "GITHUB_REPOSITORY"),
        ({"GITHUB_TOKEN": "x", "GITHUB_REPOSITORY": "a/b/../c"}, "GITHUB_REPOSITORY"),
        ({"GITHUB_TOKEN": "x", "GITHUB_REPOSITORY": "a/b", "GITHUB_API_URL": "ftp://x"}, "GITHUB_API_URL='ftp://x'"),
    ],
)
def test_what_the_environment_lacks_is_named(environment: dict[str, str], missing: str) -> None:
    with pytest.raises(UsageError, match=missing):
        connect(Step(environment))


def test_a_network_that_is_not_there(desk: Desk) -> None:
    no_route = Mock(side_effect=requests.ConnectTimeout("no route"))
    with pytest.raises(GitHubError, match="look: gave up after 8 tries: ConnectTimeout"):
        bot_module.patiently("look", no_route, desk.bot)
