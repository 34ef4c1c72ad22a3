"""GitHub answers 200, and it is no answer: it is asked again, and in the end one sentence says what came."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.reports import load
from kernelgate.bench import record
from kernelgate.bench.core.errors import UsageError
from kernelgate.ci.github import command, plan
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.baseline_pr import Offer, put
from kernelgate.ci.github.check_run import CheckRun, begin_check, put_check
from kernelgate.ci.github.client import DeniedError, GitHubError, connect, merge_base
from kernelgate.ci.github.fetch import fetch
from kernelgate.ci.github.upsert import Stamp, put_comment, put_labels
from kernelgate.ci.judge.gate import Label
from kernelgate.ci.policy.policy import Measure
from tests.called import EndsWith
from tests.ci.desk import Desk
from tests.ci.report_examples import BASE_SHA, EXAMPLES, HEAD_SHA
from tests.fakes.github_server import FakeGitHub

STAMP = Stamp(HEAD_SHA, 5, 1)
JUNK: dict[str, dict[str, Any]] = {
    "HTML": {"body": "<!DOCTYPE html><html><body>Unicorn!</body></html>"},
    "half of the JSON": {"body": '{"number": 1, "head": {"sha": "aaaa'},
    "empty": {"body": ""},
    "null": {"body": "null"},
    "{}": {"body": "{}"},
    "a message": {"body": '{"message": "Server Error"}'},
    "rate limit of words": {"headers": {"X-RateLimit-Remaining": "many", "X-RateLimit-Limit": "lots"}},
    "no content": {"status": 204, "body": ""},
    "reset at infinity": {"headers": {"X-RateLimit-Reset": "inf"}},
}

Ask = Callable[[Desk, Path], object]


def fetched(desk: Desk, folder: Path) -> object:
    run = desk.github.add_run(desk.github.pulls[1])
    desk.github.add_job(run, "measure (l4) / measure", "success")
    content = {"run.json": record.to_json(EXAMPLES["slower"]().record).encode()}
    desk.github.add_artifact(run, "kernelgate-record-l4", content)
    return fetch(desk.bot, run["id"], folder / "in")


def offered(desk: Desk, _: Path) -> object:
    return put(desk.bot, Offer("kernelgate/baseline-l4", (("b.json", b"{}"),), "Refresh", "Why.", HEAD_SHA))


def admitted(desk: Desk, _: Path) -> object:
    desk.told({"pull_request": {"number": 1, "head": {"sha": HEAD_SHA, "repo": None}}})
    desk.github.approvals[77] = {plan.FORK_ENVIRONMENT: "maintainer"}
    step = Step({**desk.bot.step.environment, "GITHUB_EVENT_NAME": "pull_request"})
    return plan.admit(desk.bot, step, HEAD_SHA)


def asked_for(desk: Desk, _: Path) -> object:
    asked = command.Requester(1, 1, "m", datetime(2030, 1, 1, tzinfo=UTC))
    desk.github.collaborators["m"] = "write"
    return command.decide(desk.bot, asked, command.Command("bench"), Measure())


def labelled(desk: Desk, _: Path) -> object:
    desk.github.pulls[1].labels.append(Label.IMPROVED.value)
    return put_labels(desk.bot, 1, {Label.REGRESSED}, STAMP)


def edited(desk: Desk, _: Path) -> object:
    put_comment(desk.bot, 1, ["Before."], STAMP)
    return put_comment(desk.bot, 1, ["Slower."], STAMP)


def checked(desk: Desk, _: Path) -> object:
    begin_check(desk.bot, STAMP, "https://github.com/x", ("Not measured yet", "Waits."))
    return put_check(desk.bot, CheckRun("failure", "Slower", "Why."), STAMP)


REQUESTS: dict[str, tuple[str, str, Ask]] = {
    "the run": ("GET", r"/actions/runs/\d+", fetched),
    "the jobs": ("GET", ".*/jobs", fetched),
    "an artifact's address": ("GET", ".*/zip", fetched),
    "the pull request": ("GET", "/pulls/1", labelled),
    "the comments": ("GET", "/issues/1/comments", edited),
    "a new comment": ("POST", "/issues/1/comments", edited),
    "the check runs": ("GET", ".*/check-runs", checked),
    "a new label": ("POST", "/issues/1/labels", labelled),
    "a label taken away": ("DELETE", "/issues/1/labels/.*", labelled),
    "the approvals": ("GET", ".*/approvals", admitted),
    "a permission": ("GET", ".*/permission", asked_for),
    "a branch": ("GET", "/git/ref/.*", offered),
    "a file": ("GET", "/contents/.*", offered),
    "a new pull request": ("POST", "/pulls", offered),
    "a comparison": ("GET", "/compare/.*", lambda desk, _: merge_base(desk.bot, BASE_SHA, HEAD_SHA)),
}

each_request = pytest.mark.parametrize(("method", "path", "ask"), REQUESTS.values(), ids=REQUESTS.keys())


@pytest.fixture(autouse=True)
def pull(github: FakeGitHub) -> None:
    github.open_pull(head_sha=HEAD_SHA, base_sha=BASE_SHA, head_repository="octo-org/kernels")
    github.comment(1, "/kernelgate bench", author="m")


@each_request
def test_junk_once_only_takes_longer(desk: Desk, tmp_path: Path, method: str, path: str, ask: Ask) -> None:
    """Each kind of junk comes once, one after the other, for the same request."""
    faults = [desk.github.fault(method, path, **what) for what in list(JUNK.values())[:6]]
    ask(desk, tmp_path)
    assert [fault.times for fault in faults] == [0] * 6
    assert len(desk.slept) == 6


@pytest.mark.nightly
@pytest.mark.parametrize("junk", JUNK)
@each_request
def test_junk_for_ever_is_one_sentence(desk: Desk, tmp_path: Path, method: str, path: str, ask: Ask, junk: str) -> None:
    what = JUNK[junk]
    desk.github.fault(method, path, times=1000, **what)
    if "headers" in what and method != "GET":
        ask(desk, tmp_path)  # it was done, and is found done
        return
    with pytest.raises(GitHubError, match="gave up after 8 tries: ") as caught:
        ask(desk, tmp_path)
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)
    assert re.search(r"no answer of its API|is no number", str(caught.value)), caught.value


@each_request
def test_an_expired_token_is_said_to_be_one(desk: Desk, tmp_path: Path, method: str, path: str, ask: Ask) -> None:
    desk.github.fault(method, path, status=401, message="Bad credentials", times=1000)
    with pytest.raises(GitHubError, match=r"the token is expired or not valid \(HTTP 401\)") as caught:
        ask(desk, tmp_path)
    assert not isinstance(caught.value, DeniedError), "it blames permissions"
    assert desk.slept == []


def test_the_verb_ends_with_a_sentence(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    for name, value in desk.bot.step.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_expired")
    said = ends_with(3, "step", "fetch", "--run-id", "1", "-o", tmp_path / "in").err.splitlines()
    assert said == ["kernelgate: run: the token is expired or not valid (HTTP 401)"]


@pytest.mark.parametrize("body", ["<html>", "[]", '"x"', "{half", ""])
def test_an_error_may_have_any_body(desk: Desk, body: str) -> None:
    """Such as a gateway's: it is the status that counts."""
    desk.github.fault("GET", "/issues/1/comments", status=502, body=body)
    assert put_comment(desk.bot, 1, ["Slower."], STAMP).outcome == "created"
    assert desk.slept == [1]


# Many reports at once: each pull request ends with one comment, one check and its label -------------------------------


MOST_CALLS = 15
"""To GitHub, for a report that nothing disturbs."""


def test_a_report_takes_few_calls() -> None:
    reports, wrong = load(pulls=2, bad_days=0)
    assert wrong == []
    assert [one.calls for one in reports if one.calls > MOST_CALLS] == []
    assert len(reports) == 4


@pytest.mark.nightly
def test_two_hundred_reports_at_once_on_bad_days() -> None:
    reports, wrong = load(pulls=200, bad_days=200)
    assert wrong == []
    assert len(reports) == 420
    assert sum(one.waits for one in reports) > 100, "the bad days hardly came"
    calm = [one.calls for one in reports if not one.waits and not one.twice]
    assert max(calm) <= MOST_CALLS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", "t0ken\n"),
        *(("GITHUB_API_URL", url) for url in ("http://", "http://here:99999", "http://[::1", "http://a b")),
    ],
)
def test_a_token_or_an_address_that_can_be_none_is_named(desk: Desk, name: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"^{name}"):
        connect(Step({**desk.bot.step.environment, name: value}))
    for url in ("https://api.github.com", "https://github.example.org/api/v3", "http://[::1]:8080"):
        connect(Step({**desk.bot.step.environment, "GITHUB_API_URL": url})).repository.requester.close()
