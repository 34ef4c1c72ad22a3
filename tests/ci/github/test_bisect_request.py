"""`/kernelgate bisect` in a pull request and in an issue: what is read, who may, which commits, what stays words."""

from __future__ import annotations

import pytest

from kernelgate.ci.github.bisect import BisectRequest
from kernelgate.ci.github.command import Command, parse
from tests.ci.desk import Desk

HEAD, BASE, GOOD, STRANGE, MAIN = "a" * 40, "b" * 40, "c" * 40, "d" * 40, "e" * 40
ISSUE = 2


@pytest.fixture
def desk(desk: Desk) -> Desk:
    github = desk.github
    github.collaborators["ada"] = "write"
    github.refs["heads/main"] = MAIN
    github.refs["tags/v1.4"] = GOOD
    github.open_pull(head_sha=HEAD, base_sha=BASE, pushed_at="2026-11-20T09:59:00Z")
    assert desk.bot.repository.create_issue(title="Slower", body="").number == ISSUE
    for tip in (HEAD, MAIN):
        github.merge_bases[STRANGE, tip] = BASE
    github.merge_bases[HEAD, MAIN] = BASE
    return desk


def test_a_search_is_read() -> None:
    for words, wanted in {
        "v1.4 HEAD --case norm/a --gpu l4": BisectRequest("v1.4", "HEAD", "norm/a", gpu="l4"),
        "--case=a --fuzz v1.4": BisectRequest("v1.4", case="a", kind="fuzz"),
        "v1.4 --build": BisectRequest("v1.4", kind="build"),
    }.items():
        assert parse(f"/kernelgate BISECT {words}") == Command("bisect", bisect=wanted)


def test_what_cannot_be_read_is_named() -> None:
    for words, why in {
        "": "Missing argument 'GOOD'",
        "a b c": "unexpected extra argument",
        "a --rounds 9": "No such option",
        "a --case": "requires an argument",
        "a --case $(id)": "not a case id: $(id)",
        "a --fuzz --build": "ask for one of them",
        "a --build --case b": "leave out --case",
    }.items():
        assert why in parse(f"/kernelgate bisect {words}").fault


def test_on_a_pull_request_its_head_is_the_bad_end_and_commits_come_in_full(desk: Desk) -> None:
    ends = {"run": "false", "bisect": "true", "number": "1", "good": GOOD, "bad": HEAD}
    asked = {"case": "norm/a", "kind": "fuzz", "gpu": "l4"}
    assert desk.asked("/kernelgate bisect v1.4 --fuzz --case norm/a") == ends | asked
    [said] = desk.replies
    assert "searches the commits after `cccccccccccc` up to `aaaaaaaaaaaa`. The answer comes here." in said


def test_in_an_issue_the_default_branch_is_the_bad_end(desk: Desk) -> None:
    outputs = desk.asked("/kernelgate bisect v1.4", number=ISSUE)
    assert (outputs["good"], outputs["bad"], outputs["number"]) == (GOOD, MAIN, str(ISSUE))
    assert len(desk.github.bodies(ISSUE)) == 2


@pytest.mark.parametrize("number", [1, ISSUE], ids=["pull request", "issue"])
def test_a_stranger_starts_no_search_and_many_refusals_are_one_comment(desk: Desk, number: int) -> None:
    for words in ("v1.4", "$(id)", "v1.4 --nope"):
        assert desk.asked(f"/kernelgate bisect {words}", login="mallory", number=number) == {"run": "false"}
    [said] = desk.replies
    assert said.startswith("`mallory`, this was not searched: the GPU is for people with write access")


def test_other_commits_and_shell_text_are_refused(desk: Desk) -> None:
    """And what was pushed since."""
    strange = "it is no commit of the default branch"
    for words, number, why in (
        (f"{STRANGE} {HEAD}", 1, f"{strange}, nor of this pull request"),
        (f"v1.4 {STRANGE}", 1, f"{strange}, nor of this pull request"),
        (f"v1.4 {HEAD}", ISSUE, strange),
        (f"{HEAD} {HEAD}", 1, "are the same commit"),
        ("nowhere", 1, "there is no branch, tag or commit"),
        ("$(id)", 1, "is not a branch, tag or commit"),
        ("v1.4;id", 1, "is not a branch, tag or commit"),
        ("..%2Fx", 1, "is not a branch, tag or commit"),
        ("v1.4 --gpu h100", 1, "the policy has no GPU"),
    ):
        assert desk.asked(f"/kernelgate bisect {words}", number=number) == {"run": "false"}
        assert why in desk.replies[-1 if number == ISSUE else 0].replace("`", "")
    desk.github.pulls[1].pushed_at = "2026-11-20T10:00:01Z"
    assert desk.asked("/kernelgate bisect v1.4") == {"run": "false"}
    assert "something was pushed since you asked" in desk.replies[0]
