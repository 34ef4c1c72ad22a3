"""`/kernelgate accept`: who takes a regression as it is, what they can take, and what ends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from kernelgate.bench.record import Run
from kernelgate.ci.github import command
from kernelgate.ci.github.assemble import Trusted
from kernelgate.ci.github.check_run import ACCEPTED_NAME as NAME
from kernelgate.ci.github.fetch import fetch
from kernelgate.ci.github.publish import post
from kernelgate.ci.policy.policy import Policy
from tests.attacks.honest import HEAD, TWO, Change, PullRequestRuns, Shown, changed, measured, only
from tests.fakes.github_server import Json

REGRESSED, ACCEPTED = "performance: regressed", "performance: accepted"
ASKED_AT = "2026-11-20T10:00:00Z"
ONE = "/kernelgate accept m1024 because exact rounding costs it"
VERDICT = "kernelgate verdict"


@pytest.fixture
def pull(pull: PullRequestRuns) -> PullRequestRuns:
    """A pull request that the second case blocks."""
    pull.desk.github.collaborators |= {"ada": "write", "mallory": "read"}
    assert pull.run([("l4", slower())]).conclusion == "failure"
    return pull


def slower(*changes: Change, worse: float = 0.1) -> bytes:
    return changed(measured(0.0, worse=worse), *changes)


def said(pull: PullRequestRuns, body: str = ONE, login: str = "ada", **comment: Any) -> bool:
    """A comment, and what answer-command.yml does with it; whether something was accepted."""
    bot, handed = pull.desk.bot, pull.desk.asked(comment.pop("body", body), login=login, **comment)
    if handed.get("accept") != "true":
        return False
    subject = Run(head_sha=handed["head_sha"], base_sha=handed["base_sha"], pull_request=1)
    into, trusted = pull.folder / f"accept{pull.desk.github.next_id()}", Trusted(pull.plan)
    if not command.accept(bot, subject, into, Policy(), trusted):
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
    pull.run([], {"plan / plan": ("success", ())})
    return verdict(pull)


def test_an_accepted_case_blocks_no_more(pull: PullRequestRuns) -> None:
    assert said(pull)
    found = verdict(pull)
    assert (found.conclusion, found.labels) == ("neutral", (ACCEPTED, REGRESSED))
    assert found.comment.startswith("### ⚠️ Does not block: accepted: 1 of 2 cases 10.0% slower ")
    assert "Accepted by `@ada`, until the next push: " in found.comment
    assert "Reason: exact rounding costs it" in found.comment
    assert reply(pull) == (
        "`@ada` accepted of `aaaaaaa`: `norm/m1024`. This ends with the next push, or with another base."
    )
    assert [content for _, content in pull.desk.github.reactions] == ["rocket"]
    [check] = kept(pull)
    assert (check["head_sha"], check["conclusion"]) == (HEAD, "neutral")
    assert check["output"]["title"] == "1 regression accepted by ada"


def test_reports_of_the_same_commit_keep_it(pull: PullRequestRuns) -> None:
    """Also after `/kernelgate bench m512`, which does not time what was accepted. Calls to GitHub are few: a report
    asks for what was accepted only where its label stands."""

    def asked() -> int:
        return sum(one.query.get("check_name") == NAME for one in pull.desk.github.requests)

    edited(pull)
    assert asked() == 0
    said(pull)
    before = asked()
    assert edited(pull).conclusion == "neutral"
    assert asked() == before + 1
    pull.run([("l4", slower(only("m512")))], command=True)
    found = pull.run([("l4", slower())], command=True)
    assert (verdict(pull).conclusion, ACCEPTED in found.labels) == ("neutral", True)


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
    pull.plan = TWO
    assert pull.run([("l4", slower()), ("h100", slower(on_h100))]).conclusion == "failure"
    assert said(pull)
    assert verdict(pull).conclusion == "neutral"
    assert "Accepted by `@ada` on every GPU, until the next push: M=1024 fp16" in verdict(pull).comment
    assert "accepted of `aaaaaaa` on every GPU" in reply(pull)


def on_h100(content: dict[str, Any]) -> None:
    content["environments"] = [{"id": "0", "device": {"name": "NVIDIA H100", "compute_capability": "9.0"}}]


def test_it_ends_no_earlier_failure_where_something_is_in_doubt(pull: PullRequestRuns) -> None:
    """The accepted case was measured, the other one was not: that one may be what failed before."""
    pull.run([("l4", changed(measured(0.1)))])
    assert pull.run([("l4", changed(measured(0.1), only("m1024")))], command=True).conclusion == "failure"
    assert said(pull)
    assert verdict(pull).conclusion == "failure"


MISTAKES = (
    ("/kernelgate accept because so", "the case is missing: `/kernelgate` accept `CASE` because `REASON`"),
    ("/kernelgate accept m1024", "the reason is missing: `/kernelgate` accept `CASE` because `REASON`"),
    ("/kernelgate accept m1024 because " + "x" * 201, "the reason has 201 characters; at most 200, on one line"),
    ("/kernelgate accept $(id) because so", "not a case id: `$(id)`"),
    ("/kernelgate accept m2048 because so", "m2048 is no case that was measured; what blocks by its speed is"),
    ("/kernelgate accept m512 because so", "m512 was measured and does not block; what blocks by its speed is"),
)


def test_a_mistake_gets_one_sentence(pull: PullRequestRuns) -> None:
    before = verdict(pull)
    for number, (body, why) in enumerate(MISTAKES, 1):
        assert not said(pull, body)
        assert reply(pull).startswith("`ada`, this was not accepted: ")
        assert why.replace("`", "") in reply(pull).replace("`", "")
        assert [content for _, content in pull.desk.github.reactions] == ["confused"] * number
    assert (verdict(pull), kept(pull)) == (before, [])


# Who may, what of, and for how long ----------------------------------------------------------------------------------


def pushed_just_before(pull: PullRequestRuns) -> None:
    """The verdict on the screen is of the commit before; the new head has none."""
    opened = pull.desk.github.pulls[1]
    opened.head_sha, opened.pushed_at = "c" * 40, "2026-11-20T09:59:59Z"


def measured_before_it_was_read(pull: PullRequestRuns) -> None:
    """Pushed just before the comment, and measured before the comment was read."""
    pull.desk.github.now = ASKED_AT
    moved(pull)


def measured_again(pull: PullRequestRuns) -> None:
    run = pull.desk.github.add_run(pull.desk.github.pulls[1], status="queued", conclusion=None)
    fetch(pull.desk.bot, run["id"], pull.folder / "begun")
    assert post(pull.desk.bot, pull.folder / "begun", Policy()) == 0


def pushed_since(pull: PullRequestRuns) -> None:
    opened = pull.desk.github.pulls[1]
    opened.head_repository, opened.pushed_at = "mallory/kernels", "2026-11-20T10:00:01Z"


def rewrites_its_judge(pull: PullRequestRuns) -> None:
    """Its own workflow wrote the records: else an acceptance would make them count."""
    pull.desk.github.pulls[1].files.append({"filename": ".github/workflows/performance.yml"})
    pull.run([("l4", slower())])


def changes_while_it_is_read(how: Callable[[PullRequestRuns], None]) -> Callable[[PullRequestRuns], object]:
    return lambda pull: pull.desk.github.fault("GET", "/collaborators/.*", before=lambda: how(pull), status=502)


def comment_deleted(pull: PullRequestRuns) -> None:
    del pull.desk.github.comments[asked(pull)]


def comment_edited(pull: PullRequestRuns) -> None:
    pull.desk.github.comments[asked(pull)]["body"] = f"{ONE}, and m512"


def asked(pull: PullRequestRuns) -> int:
    return max(number for number, comment in pull.desk.github.comments.items() if comment["body"] == ONE)


def wrong(content: dict[str, Any]) -> None:
    content["checks"][0] |= {"status": "failed", "failed": 1}
    content["checks"][0]["results"][0] |= {"passed": False, "error_ratio": 20.0}


REFUSED: dict[str, tuple[Callable[[PullRequestRuns], object], str]] = {
    "records gone": (
        lambda pull: [one.update(expired=True) for one in pull.desk.github.artifacts.values()],
        "what was measured is gone, or cannot be used",
    ),
    "run gone": (lambda pull: pull.desk.github.runs.clear(), "what was measured is gone, or cannot be used"),
    "nothing blocks": (lambda pull: pull.run([("l4", changed(measured(0.0)))]), "nothing blocks by its speed"),
    "pushed just before": (pushed_just_before, "ccccccc has no verdict yet"),
    "measured before it was read": (measured_before_it_was_read, "the verdict came after your comment"),
    "measured again": (measured_again, "aaaaaaa has no verdict yet"),
    "pushed since": (pushed_since, "something was pushed since you asked"),
    "rewrites its judge": (rewrites_its_judge, "this was not accepted"),
    "wrong result": (
        lambda pull: pull.run([("l4", slower(wrong))]),
        "only speed can be accepted, and what blocks is a wrong result",
    ),
    "comment edited": (changes_while_it_is_read(comment_edited), "the comment was edited or deleted since"),
    "comment deleted": (changes_while_it_is_read(comment_deleted), "the comment was edited or deleted since"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused(pull: PullRequestRuns, case: str) -> None:
    arrange, why = REFUSED[case]
    arrange(pull)
    before = verdict(pull)
    assert not said(pull)
    assert why in reply(pull).replace("`", "")
    assert (verdict(pull), kept(pull)) == (before, [])


def test_who_may_not_write_accepts_nothing(pull: PullRequestRuns) -> None:
    for role in ("none", "read", "triage"):
        pull.desk.github.collaborators["mallory"] = role
        assert not said(pull, login="mallory")
        assert "only people with write access accept a regression" in reply(pull)
        assert (verdict(pull).conclusion, kept(pull)) == ("failure", [])


def test_what_is_no_command_of_a_person_accepts_nothing(pull: PullRequestRuns) -> None:
    for comment in (
        {"user": {"login": "ada", "type": "Bot"}},
        {"performed_via_github_app": {"slug": "helper"}},
        {"body": f"> {ONE}"},
        {"body": f"as ada wrote:\n{ONE}"},
        {"body": f"```\n{ONE}\n```"},
        {"body": f"    <!-- -->\n{ONE}"},
    ):
        assert not said(pull, **comment)
        assert (pull.desk.github.reactions, kept(pull)) == ([], [])


def test_what_the_bot_is_made_to_say_accepts_nothing(pull: PullRequestRuns) -> None:
    """Another workflow that repeats what a stranger wrote does it in the bot's name."""
    pull.desk.github.comment(1, ONE)
    pull.desk.github.pulls[1].labels.append(ACCEPTED)
    assert edited(pull).conclusion == "failure"
    assert ACCEPTED not in pull.desk.github.pulls[1].labels


def moved(pull: PullRequestRuns, side: str = "head", worse: float = 0.1) -> None:
    """Another head, or another base, was measured so much slower."""
    setattr(pull.desk.github.pulls[1], f"{side}_sha", "c" * 40)

    def change(content: dict[str, Any]) -> None:
        content["run"][f"{side}_sha"] = content["builds"][side == "head"]["sha"] = "c" * 40

    pull.run([("l4", slower(change, worse=worse))])


def another_apps(pull: PullRequestRuns) -> None:
    kept(pull)[0]["app"] = kept(pull)[0]["app"] | {"slug": "mallorys-app"}


def damaged(text: str | None) -> Callable[[PullRequestRuns], None]:
    return lambda pull: kept(pull)[0]["output"].update(text=text)


ENDED: dict[str, Callable[[PullRequestRuns], object]] = {
    "a push": moved,
    # What is 10% slower than one base may be 40% slower than another.
    "another base": lambda pull: moved(pull, "base", worse=0.4),
    "a wrong result": lambda pull: pull.run([("l4", slower(wrong))]),
    "comment edited": comment_edited,
    "comment deleted": comment_deleted,
    "a check run of another App": another_apps,
    "no text": damaged(None),
    "another schema": damaged('```json\n{"schema": "kernelgate.accepted/2"}\n```'),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", ENDED)
def test_it_ends(pull: PullRequestRuns, case: str) -> None:
    assert said(pull)
    ENDED[case](pull)
    found = verdict(pull) if case in ("a push", "another base", "a wrong result") else edited(pull)
    assert found.conclusion == "failure"
    assert "Accepted by" not in found.comment
    assert ACCEPTED not in found.labels or case in ("another base", "a wrong result")


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
