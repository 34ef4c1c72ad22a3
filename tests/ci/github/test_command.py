"""`/kernelgate …` in a comment: who may, what is run, which cases are accepted, and what a stranger gets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernelgate.bench.record import Case, CaseKey
from kernelgate.ci.document.model import Report
from kernelgate.ci.github.assemble import Posting
from kernelgate.ci.github.command import Command, NotDoneError, chosen, parse
from kernelgate.ci.judge.gate import Decision, GpuEvidence, Regression
from kernelgate.ci.policy.policy import Measure
from kernelgate.ci.report.gpu import GpuReport
from tests.ci.desk import Desk
from tests.fakes.github_server import Pull
from tests.runs import run_record

HEAD, BASE = "a" * 40, "b" * 40


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """With a pull request, and somebody who may write."""
    desk.github.collaborators["ada"] = "write"
    desk.github.open_pull(head_sha=HEAD, base_sha=BASE, pushed_at="2026-11-20T09:59:00Z")
    return desk


@pytest.fixture
def pull(desk: Desk) -> Pull:
    return desk.github.pulls[1]


def test_people_with_write_access_are_served(desk: Desk) -> None:
    desk.github.collaborators["ada"] = "maintain"
    outputs = desk.asked("/kernelgate bench s512_b32_h8_d64_fp16 s1_b1_h1_d64_bf16_causal")
    assert outputs["run"] == "true"
    assert (outputs["verb"], outputs["head_sha"], outputs["base_sha"]) == ("bench", HEAD, BASE)
    assert outputs["cases"] == "s512_b32_h8_d64_fp16 s1_b1_h1_d64_bf16_causal"
    assert [gpu["label"] for gpu in json.loads(outputs["gpus"])] == ["l4"]
    assert [content for _, content in desk.github.reactions] == ["rocket"]
    [reply] = desk.replies
    assert reply.startswith("[This run](https://github.com/octo-org/kernels/actions/runs/77) does `bench s512_b32")


@pytest.mark.parametrize("role", ["none", "triage", "no collaborator at all"])
def test_a_stranger_is_refused_politely_once_and_learns_no_more_from_a_bad_command(desk: Desk, role: str) -> None:
    if role == "no collaborator at all":
        desk.github.fault("GET", "/collaborators/.*", status=404, message="Not Found", times=3)
    desk.github.collaborators["mallory"] = role
    for words in ("bench", "bench", "bench $(id)"):
        assert desk.asked(f"/kernelgate {words}", login="mallory") == {"run": "false"}
    assert {content for _, content in desk.github.reactions} == {"confused"}
    [reply] = desk.replies
    assert reply.startswith("`mallory`, this was not run: the GPU is for people with write access; one of them can ask")


@pytest.mark.parametrize(
    "change",
    [
        {"event": {"action": "edited"}},
        {"user": {"login": "ada", "type": "Bot"}},
        {"event": {"issue": {"number": 1, "title": "an issue, no pull request"}}},
        {"body": "I would try /kernelgate bench"},
    ],
)
def test_what_is_no_command_is_ignored(desk: Desk, change: dict[str, Any]) -> None:
    assert desk.asked(**change) == {"run": "false"}
    assert (desk.github.reactions, desk.github.writes()) == ([], [])


@pytest.mark.parametrize(
    ("repository", "older_run", "measured"),
    [
        ("octo-org/kernels", False, False),
        ("octo-org/kernels", True, True),
        ("mallory/kernels", True, False),
        (None, True, False),
    ],
    ids=["pushed since", "pushed elsewhere in the repository", "a fork took back and put back", "a fork that is gone"],
)
def test_what_was_pushed_since_is_not_measured(
    desk: Desk, pull: Pull, repository: str | None, older_run: bool, measured: bool
) -> None:
    """An older run of a commit shows that it was head before; a fork may have had another one meanwhile."""
    pull.head_repository, pull.pushed_at = repository, "2026-11-20T10:00:01Z"
    if older_run:
        desk.github.add_run(pull, created_at="2026-11-20T09:00:00Z")
    assert desk.asked().get("head_sha") == (HEAD if measured else None)
    assert ("something was pushed since you asked" in desk.replies[0]) == (not measured)
    if repository is None:
        # GitHub sends null for its repository, though its description knows no such case.
        desk.github.problems.clear()


def test_a_closed_pull_request_is_not_measured_and_a_draft_is(desk: Desk, pull: Pull) -> None:
    pull.draft = True
    assert desk.asked()["run"] == "true"
    pull.state = "closed"
    assert desk.asked() == {"run": "false"}


def test_without_a_card_nothing_is_measured(desk: Desk, pull: Pull) -> None:
    """It would be built, and block for the card that it lacks; one that brings the first card is measured."""
    rules = Measure(paths=(".ci/kernels/",))
    assert desk.asked(rules=rules) == {"run": "false"}
    assert "the default branch describes no kernel yet: a card, " in desk.replies[0]
    pull.files = [{"filename": ".ci/kernels/norm.py"}]
    assert desk.asked(rules=rules)["run"] == "true"


def test_commands_are_read() -> None:
    for body, command in {
        "/KernelGate  Fuzz ": Command("fuzz"),
        "\r\n\r\n  /kernelgate profile a_b\r\nthank you": Command("profile", ("a_b",)),
        "/kernelgate bench a b a": Command("bench", ("a", "b")),
        "/kernelgate ACCEPT a norm/b  Because  x, because y ": Command("accept", ("a", "norm/b"), "x, because y"),
        "/kernelgate accept all because so\nand more": Command("accept", ("all",), "so"),
    }.items():
        assert parse(body) == command


def test_other_comments_are_not() -> None:
    of_bench = (">", "see\n", "```\n")
    for body in ("", "bench", "/kernelgates bench", *(f"{before}/kernelgate bench" for before in of_bench)):
        assert parse(body) is None, body


def test_an_acceptance_is_handed_on(desk: Desk) -> None:
    """Another job may change the check; this one builds and measures nothing."""
    outputs = desk.asked("/kernelgate accept a because so")
    assert outputs == {"run": "false", "accept": "true", "pull_request": "1", "head_sha": HEAD, "base_sha": BASE}
    assert desk.github.reactions == []


def test_unknown_verbs_get_the_known_ones_and_too_many_cases_are_refused() -> None:
    for words in ("", "bench-all", "--help", "bench;id"):
        said = parse(f"/kernelgate {words}")
        assert "bench, profile or fuzz" in said.fault
        assert "/kernelgate accept CASE because REASON" in said.fault
    said = parse("/kernelgate bench " + " ".join(f"c{number}" for number in range(17)))
    assert said.fault == "at most 16 cases at once; these are 17"


SHELL = ["$(id)", "`id`", "a;id", "-o", "../x", "a\\b", "${{secrets.X}}", "a\u2028b", "ａ", "x" * 81, "@octocat"]


def test_shell_text_is_no_case(desk: Desk) -> None:
    for word in SHELL:
        said = parse(f"/kernelgate bench {word}")
        assert said is None or said.fault
        assert desk.asked(f"/kernelgate bench {word}") == {"run": "false"}
        assert desk.replies[0].count("@octocat") == desk.replies[0].count("`@octocat`")


def test_without_the_right_to_comment_the_run_goes_on(desk: Desk) -> None:
    desk.github.permissions |= {"pull-requests": "read", "issues": "read"}
    outputs = desk.asked()
    assert outputs["run"] == "true"
    assert "does `bench` of `aaaaaaa`" in desk.summary


NORM, GELU, SUM = CaseKey("norm", "m1"), CaseKey("gelu", "m1"), CaseKey("sum", "m2")


def posting(*slower: CaseKey) -> Posting:
    record = run_record(()).model_copy(update={"cases": tuple(Case(card=k.card, id=k.id) for k in (NORM, GELU, SUM))})
    regressions = tuple(Regression("l4", key) for key in slower)
    decision = Decision("failure", regressions=regressions)
    return Posting(Report(("Slower",), ()), decision, (GpuReport(GpuEvidence("l4"), record),))


def cases(words: str, *slower: CaseKey) -> list[CaseKey]:
    return chosen(Command("accept", tuple(words.split()), "so"), posting(*slower))


def test_an_id_of_several_cards_is_the_one_that_blocks_or_is_asked_for() -> None:
    together = CaseKey("norm", "")
    assert cases("all", NORM, together) == [NORM, together]
    assert cases("m1", NORM, SUM) == [NORM]
    assert cases("gelu/m1", NORM, GELU) == [GELU]
    with pytest.raises(NotDoneError, match=r"^m1 is a case of several cards; write gelu/m1 or norm/m1$"):
        cases("m1", NORM, GELU)
