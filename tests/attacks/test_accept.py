"""`/kernelgate accept`: who takes a regression as it is, what they can take, and what ends it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from kernelgate.bench.record import Run
from kernelgate.ci.github import accept, assemble
from kernelgate.ci.github.assemble import Trusted
from kernelgate.ci.github.check_run import ACCEPTED_NAME as NAME
from kernelgate.ci.github.fetch import fetch
from kernelgate.ci.github.publish import post
from kernelgate.ci.policy.policy import Policy
from tests.attacks.honest import HEAD, PLAN, PullRequestRuns, Shown, changed, judged_once, measured
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


def said(pull: PullRequestRuns, body: str = ONE, login: str = "ada", **comment: Any) -> bool:
    """A comment, and what answer-command.yml does with it; whether something was accepted."""
    bot, handed = pull.desk.bot, pull.desk.asked(comment.pop("body", body), login=login, **comment)
    if handed.get("accept") != "true":
        return False
    subject = Run(head_sha=handed["head_sha"], base_sha=handed["base_sha"], pull_request=1)
    into, trusted = pull.folder / f"accept{pull.desk.github.next_id()}", Trusted(pull.plan)
    if not accept.accept(bot, subject, into, Policy(), trusted):
        return False
    assert post(bot, into, Policy(), trusted=trusted) == 0
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


def test_a_report_of_the_same_commit_keeps_it(pull: PullRequestRuns) -> None:
    said(pull)
    assert edited(pull).conclusion == "neutral"
    found = pull.run([("l4", slower())], command=True)
    assert (verdict(pull).conclusion, ACCEPTED in found.labels) == ("neutral", True)


def test_what_measures_less_forgets_nothing(pull: PullRequestRuns) -> None:
    """`/kernelgate bench m512`, which does not time what was accepted, and then all of it again."""
    said(pull)

    def harmless(content: dict[str, Any]) -> None:
        content["cases"] = content["cases"][:1]
        for one in content["processes"]:
            one["timings"] = [timing for timing in one["timings"] if timing["case"] == "m512"]

    pull.run([("l4", changed(measured(0.0, worse=0.1), harmless))], command=True)
    pull.run([("l4", slower())], command=True)
    assert verdict(pull).conclusion == "neutral"


@pytest.mark.slow
@pytest.mark.parametrize("words", ["all", "m512 m1024", "norm/m1024 m512"])
def test_everything_may_be_accepted_at_once(pull: PullRequestRuns, words: str) -> None:
    assert pull.run([("l4", changed(measured(0.1)))]).conclusion == "failure"
    assert said(pull, f"/kernelgate accept {words} because exact rounding costs it")
    assert verdict(pull).conclusion == "neutral"
    [check] = kept(pull)
    assert '"id":"m512"' in check["output"]["text"]
    assert '"id":"m1024"' in check["output"]["text"]


def test_what_nobody_accepted_blocks_still(pull: PullRequestRuns) -> None:
    pull.run([("l4", changed(measured(0.1)))])
    assert said(pull)
    found = verdict(pull)
    assert (found.conclusion, found.labels) == ("failure", (ACCEPTED, REGRESSED))
    assert "Not accepted, so this blocks: M=512 fp16" in found.comment
    assert reply(pull).endswith("Not accepted, so this blocks: `norm/m512`.")
    assert said(pull, "/kernelgate accept m512 because that one too")
    assert verdict(pull).conclusion == "neutral"
    assert verdict(pull).comment.count("Accepted by `@ada`") == 2


def test_an_incomplete_description_blocks_still(pull: PullRequestRuns) -> None:
    pull.desk.github.pulls[1].body = ""
    assert said(pull)
    assert verdict(pull).conclusion == "failure"
    assert "It is still blocked by the description" in reply(pull)


def test_it_is_accepted_on_every_gpu(pull: PullRequestRuns) -> None:
    pull.plan = {"l4": PLAN, "h100": PLAN.model_copy(update={"label": "h100", "target": "9.0"})}
    other = changed(measured(0.0, worse=0.1), on_h100)
    assert pull.run([("l4", slower()), ("h100", other)]).conclusion == "failure"
    assert said(pull)
    assert verdict(pull).conclusion == "neutral"
    assert "Accepted by `@ada` on every GPU, until the next push: M=1024 fp16" in verdict(pull).comment
    assert "accepted of `aaaaaaa` on every GPU" in reply(pull)


def on_h100(content: dict[str, Any]) -> None:
    content["environments"] = [{"id": "0", "device": {"name": "NVIDIA H100", "compute_capability": "9.0"}}]


def test_it_ends_what_an_earlier_run_of_the_same_commit_found(pull: PullRequestRuns) -> None:
    """Measured twice, it failed twice; nor does a third run that is cut short bring the failure back."""
    assert pull.run([("l4", slower())]).conclusion == "failure"
    assert said(pull)
    assert verdict(pull).conclusion == "neutral"
    pull.run([], {"measure (l4) / measure": ("cancelled", ())}, conclusion="cancelled")
    assert verdict(pull).conclusion == "neutral"


def test_it_ends_no_earlier_failure_where_something_is_in_doubt(pull: PullRequestRuns) -> None:
    """The accepted case was measured, the other one was not: that one may be what failed before."""
    pull.run([("l4", changed(measured(0.1)))])

    def one_case(content: dict[str, Any]) -> None:
        content["cases"] = content["cases"][1:]
        for one in content["processes"]:
            one["timings"] = [timing for timing in one["timings"] if timing["case"] == "m1024"]

    assert pull.run([("l4", changed(measured(0.1), one_case))], command=True).conclusion == "failure"
    assert said(pull)
    assert verdict(pull).conclusion == "failure"


def test_a_report_asks_for_it_only_where_its_label_stands(pull: PullRequestRuns) -> None:
    """A report has few calls to GitHub to spare."""

    def asked() -> int:
        return sum(one.query.get("check_name") == NAME for one in pull.desk.github.requests)

    edited(pull)
    assert asked() == 0
    said(pull)
    before = asked()
    edited(pull)
    assert asked() == before + 1


# Mistakes ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("/kernelgate accept because so", "the case is missing: `/kernelgate` accept `CASE` because `REASON`"),
        ("/kernelgate accept m1024", "the reason is missing: `/kernelgate` accept `CASE` because `REASON`"),
        ("/kernelgate accept m1024 because", "the reason is missing: `/kernelgate` accept `CASE` because `REASON`"),
        ("/kernelgate accept m1024 because " + "x" * 201, "the reason has 201 characters; at most 200, on one line"),
        ("/kernelgate accept all m1024 because so", "name the cases, or write all in place of them, not both"),
        ("/kernelgate accept $(id) because so", "not a case id: `$(id)`"),
        ("/kernelgate accept m2048 because so", "m2048 is no case that was measured; what blocks by its speed is"),
        ("/kernelgate accept gelu/m1024 because so", "is no case that was measured; what blocks by its speed is"),
        ("/kernelgate accept m512 because so", "m512 was measured and does not block; what blocks by its speed is"),
    ],
)
def test_a_mistake_gets_one_sentence(pull: PullRequestRuns, body: str, why: str) -> None:
    before = verdict(pull)
    assert not said(pull, body)
    assert reply(pull).startswith("`ada`, this was not accepted: ")
    assert why.replace("`", "") in reply(pull).replace("`", "")
    assert [content for _, content in pull.desk.github.reactions] == ["confused"]
    assert (verdict(pull), kept(pull)) == (before, [])


def test_what_is_gone_is_not_judged_again(pull: PullRequestRuns) -> None:
    """Neither the records nor the run: what the comment says stays as it is."""
    before = verdict(pull)
    for artifact in pull.desk.github.artifacts.values():
        artifact["expired"] = True
    assert not said(pull)
    assert "what was measured is gone, or cannot be used" in reply(pull)
    pull.desk.github.runs.clear()
    assert not said(pull)
    assert "what was measured is gone, or cannot be used" in reply(pull)
    assert (verdict(pull), kept(pull)) == (before, [])


def test_nothing_blocks(pull: PullRequestRuns) -> None:
    pull.run([("l4", changed(measured(0.0)))])
    assert not said(pull)
    assert reply(pull) == "`ada`, this was not accepted: nothing blocks by its speed."


# Who -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["none", "read", "triage"])
def test_who_may_not_write_accepts_nothing(pull: PullRequestRuns, role: str) -> None:
    pull.desk.github.collaborators["mallory"] = role
    assert not said(pull, login="mallory")
    assert "only people with write access accept a regression" in reply(pull)
    assert (verdict(pull).conclusion, kept(pull)) == ("failure", [])


@pytest.mark.slow
@pytest.mark.parametrize(
    "comment",
    [
        {"user": {"login": "ada", "type": "Bot"}},
        {"performed_via_github_app": {"slug": "helper"}},
        {"body": f"> {ONE}"},
        {"body": f"as ada wrote:\n{ONE}"},
        {"body": f"```\n{ONE}\n```"},
        {"body": f"    <!-- -->\n{ONE}"},
    ],
    ids=["a bot", "an App in her name", "a quote", "second line", "code", "behind a comment"],
)
def test_what_is_no_command_of_a_person_accepts_nothing(pull: PullRequestRuns, comment: dict[str, Any]) -> None:
    assert not said(pull, **comment)
    assert (pull.desk.github.reactions, kept(pull)) == ([], [])


def test_what_the_bot_is_made_to_say_accepts_nothing(pull: PullRequestRuns) -> None:
    """Another workflow that repeats what a stranger wrote does it in the bot's name."""
    pull.desk.github.comment(1, ONE)
    pull.desk.github.pulls[1].labels.append(ACCEPTED)
    assert edited(pull).conclusion == "failure"
    assert ACCEPTED not in pull.desk.github.pulls[1].labels


def test_a_check_run_of_another_app_accepts_nothing(pull: PullRequestRuns) -> None:
    said(pull)
    kept(pull)[0]["app"] = kept(pull)[0]["app"] | {"slug": "mallorys-app"}
    assert edited(pull).conclusion == "failure"


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [None, "", "```json\n{}\n```", '```json\n{"schema": "kernelgate.accepted/2"}\n```'],
    ids=["none", "blank", "empty", "another schema"],
)
def test_a_check_run_that_cannot_be_read_accepts_nothing(pull: PullRequestRuns, text: str | None) -> None:
    said(pull)
    kept(pull)[0]["output"]["text"] = text
    assert edited(pull).conclusion == "failure"


@pytest.mark.parametrize("how", ["edited", "deleted"])
@pytest.mark.parametrize("when", ["before it is read", "afterwards"])
def test_a_comment_that_does_not_stand_accepts_nothing(pull: PullRequestRuns, how: str, when: str) -> None:
    github = pull.desk.github

    def change() -> None:
        number = max(one for one, each in github.comments.items() if each["body"] == ONE)
        if how == "deleted":
            del github.comments[number]
        else:
            github.comments[number]["body"] = f"{ONE}, and m512"

    if when == "afterwards":
        assert said(pull)
        change()
        assert edited(pull).conclusion == "failure"
    else:
        github.fault("GET", "/collaborators/.*", before=change, status=502)
        assert not said(pull)
        assert "the comment was edited or deleted since" in reply(pull)
    assert verdict(pull).conclusion == "failure"


# Which commit --------------------------------------------------------------------------------------------------------


def test_the_next_push_ends_it(pull: PullRequestRuns) -> None:
    said(pull)
    assert pushed(pull, "c" * 40).conclusion == "failure"
    assert verdict(pull).labels == (REGRESSED,)


def pushed(pull: PullRequestRuns, head: str) -> Shown:
    """Another head, measured as slow as the one before."""
    pull.desk.github.pulls[1].head_sha = head

    def moved(content: dict[str, Any]) -> None:
        content["run"]["head_sha"] = head
        content["builds"][1]["sha"] = head

    pull.run([("l4", changed(measured(0.0, worse=0.1), moved))])
    return verdict(pull)


def test_another_base_ends_it(pull: PullRequestRuns) -> None:
    """What is 10% slower than one base may be 40% slower than another."""
    said(pull)
    base = "d" * 40
    pull.desk.github.pulls[1].base_sha = base

    def moved(content: dict[str, Any]) -> None:
        content["run"]["base_sha"] = base
        content["builds"][0]["sha"] = base

    assert pull.run([("l4", changed(measured(0.0, worse=0.4), moved))]).conclusion == "failure"


def test_what_was_pushed_just_before_is_not_accepted(pull: PullRequestRuns) -> None:
    """The verdict on the screen is of the commit before; the new head has none."""
    github = pull.desk.github
    github.pulls[1].head_sha, github.pulls[1].pushed_at = "c" * 40, "2026-11-20T09:59:59Z"
    assert not said(pull)
    assert "ccccccc has no verdict yet" in reply(pull).replace("`", "")


def test_a_verdict_that_came_after_the_comment_is_not_accepted(pull: PullRequestRuns) -> None:
    """Pushed just before the comment, and measured before the comment was read."""
    pull.desk.github.now = ASKED_AT
    pushed(pull, "c" * 40)
    assert not said(pull)
    assert "the verdict came after your comment" in reply(pull)


def test_what_is_being_measured_is_not_accepted(pull: PullRequestRuns) -> None:
    run = pull.desk.github.add_run(pull.desk.github.pulls[1], status="queued", conclusion=None)
    fetch(pull.desk.bot, run["id"], pull.folder / "begun")
    assert post(pull.desk.bot, pull.folder / "begun", Policy()) == 0
    assert not said(pull)
    assert "aaaaaaa has no verdict yet" in reply(pull).replace("`", "")


def test_what_was_pushed_since_is_not_accepted(pull: PullRequestRuns) -> None:
    pull.desk.github.pulls[1].head_repository = "mallory/kernels"
    pull.desk.github.pulls[1].pushed_at = "2026-11-20T10:00:01Z"
    assert not said(pull)
    assert "something was pushed since you asked" in reply(pull)


def test_a_pull_request_that_rewrites_its_judge_has_nothing_to_accept(pull: PullRequestRuns) -> None:
    """Its own workflow wrote the records: else an acceptance would make them count."""
    pull.desk.github.pulls[1].files.append({"filename": ".github/workflows/performance.yml"})
    pull.run([("l4", slower())])
    assert not said(pull)
    assert verdict(pull).conclusion == "action_required"


# What ----------------------------------------------------------------------------------------------------------------


def wrong(content: dict[str, Any]) -> None:
    content["checks"][0] |= {"status": "failed", "failed": 1}
    content["checks"][0]["results"][0] |= {"passed": False, "error_ratio": 20.0}


def test_a_wrong_result_is_not_accepted(pull: PullRequestRuns) -> None:
    assert pull.run([("l4", changed(measured(0.0, worse=0.1), wrong))]).conclusion == "failure"
    assert not said(pull)
    assert "only speed can be accepted, and what blocks is a wrong result" in reply(pull)


def test_what_was_accepted_excuses_no_wrong_result(pull: PullRequestRuns) -> None:
    said(pull)
    assert pull.run([("l4", changed(measured(0.0, worse=0.1), wrong))]).conclusion == "failure"
    assert "Accepted by" not in verdict(pull).comment


def test_a_reason_is_inert(pull: PullRequestRuns) -> None:
    evil = "@octocat [x](https://evil.test) <img src=x> ``` `a` | #12 ::set-output name=a::b <!-- kernelgate-state -->"
    assert said(pull, f"/kernelgate accept m1024 because {evil}")
    assert "`" not in kept(pull)[0]["output"]["text"].removeprefix("```json").removesuffix("```")
    for text in (verdict(pull).comment, kept(pull)[0]["output"]["summary"], reply(pull)):
        assert not {"link_open", "image", "html_inline"} & {token.type for token in inline(text)}
        words = " ".join(token.content for token in inline(text) if token.type == "text")
        assert not any(bad in words for bad in ("@octocat", "#12", "evil.test"))
    assert edited(pull).conclusion == "neutral"


def inline(text: str) -> list[Token]:
    """Everything that stands in the lines on what was accepted."""
    lines = [line for line in text.splitlines() if "accept" in line.lower() and not line.startswith("#")]
    return [inner for token in MarkdownIt().parse("\n\n".join(lines)) for inner in token.children or ()]
