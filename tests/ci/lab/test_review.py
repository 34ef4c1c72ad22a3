"""A reviewer's answer to a session, from a comment to a pull request, and what comes of it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from kernelgate.ci.github import command
from kernelgate.ci.github.client import GitHubError
from kernelgate.ci.github.command import Refusal, Requester
from kernelgate.ci.github.propose import Offer
from kernelgate.ci.lab import figures, folder, log, outcomes, pattern
from kernelgate.ci.lab.log import Corrected
from kernelgate.ci.lab.review import MISSING, CorrectionAnswer, PatternAnswer, answer, offer, parse
from tests.ci.desk import Desk
from tests.ci.lab import session_events as made
from tests.fakes.github_server import event

ASKED = Requester(7, 12, "octocat", datetime(2026, 11, 22, 12, tzinfo=UTC))
LOG = ".ci/sessions/one/log.jsonl"
EVENTS = (made.opened(), *made.passed(0.8), made.tried(1, -5, action="larger-tiles", bottleneck="l2"))
CORRECTION = CorrectionAnswer("one", 1, "wider-loads", None, "it loads wider, too")


def read(path: str) -> str | None:
    return {LOG: "".join(map(log.line, EVENTS)), "docs/patterns/known.md": "---\nname: known\n---\n"}.get(path)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("/kernelgate pattern warm-up: measure\n twice", PatternAnswer("warm-up", "measure twice")),
        (
            "/kernelgate correct one/3 action=tile bottleneck=dram : it reads more",
            CorrectionAnswer("one", 3, "tile", "dram", "it reads more"),
        ),
        ("/kernelgate correct one/3 bottleneck=dram: so", CorrectionAnswer("one", 3, None, "dram", "so")),
        ("/Kernelgate  PATTERN warm-up: so\r\n", PatternAnswer("warm-up", "so")),
        ("/kernelgate bench", None),
        ("looks good", None),
    ],
)
def test_an_answer_is_read(body: str, found: object) -> None:
    assert parse(body) == found


@pytest.mark.parametrize(
    "body",
    [
        "/kernelgate pattern warm-up: so",
        "/KERNELGATE  Correct one/3",
        "\n/kernelgate pattern\nbench",
        "/kernelgate patterns",
        "/kernelgate pattern: so",
        "/kernelgate correct-it",
        "/kernelgate bench",
        "/kernelgate",
        "say /kernelgate pattern a: b",
        "pattern",
    ],
)
def test_each_comment_is_answered_by_one_of_the_two_workflows_at_most(body: str) -> None:
    by_command, by_review = command.parse(body) is not None, parse(body) is not None
    assert (by_command + by_review) == (body.strip().lower().startswith("/kernelgate"))


@pytest.mark.parametrize(
    "body",
    [
        "/kernelgate pattern ../../etc: text",
        "/kernelgate pattern name",
        "/kernelgate correct one/3: why",
        "/kernelgate correct one/0 action=tile: why",
        "/kernelgate correct one/3 action=tile\nby=root: why",
        f"/kernelgate pattern name: {'x' * 2000}",
    ],
)
def test_what_is_none_is_refused(body: str) -> None:
    assert isinstance(parse(body), Refusal)


def test_a_correction_is_added_to_the_log_with_the_reviewers_name_and_counts() -> None:
    found = offer(CORRECTION, ASKED, "c" * 40, read)

    assert isinstance(found, Offer)
    [(path, content)] = found.files
    assert (path, found.branch) == (LOG, "kernelgate/review-7")
    events = [log.event_of(line) for line in content.decode().splitlines()]
    assert events[:-1] == list(EVENTS)
    assert isinstance(events[-1], Corrected)
    assert (events[-1].by, events[-1].why) == ("octocat", "it loads wider, too")
    assert [(one.action, one.bottleneck) for one in figures.try_states(events)] == [("wider-loads", "l2")]
    assert "octocat" in found.body
    assert "octocat" in found.because


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (replace(CORRECTION, number=9), "has no try 9"),
        (replace(CORRECTION, session="other"), "has no session other"),
        (replace(CORRECTION, action="magic"), "no action is called magic"),
        (replace(CORRECTION, bottleneck="luck"), "no bottleneck is called luck; there are tensor, "),
        (replace(CORRECTION, action="larger-tiles", bottleneck="l2"), "is labelled so already"),
    ],
)
def test_a_correction_of_nothing_is_refused(found: CorrectionAnswer, said: str) -> None:
    refused = offer(found, ASKED, "c" * 40, read)
    assert isinstance(refused, Refusal)
    assert said in refused.why


def test_what_is_learnt_changes_once_the_correction_is_merged(tmp_path: Path) -> None:
    place = tmp_path / "one"
    place.mkdir()
    (place / log.FILE).write_text(read(LOG) or "", encoding="utf-8")
    (before,) = outcomes.read(tmp_path)
    found = parse("/kernelgate correct one/1 action=wider-loads bottleneck=dram: look at the sectors")
    assert isinstance(found, CorrectionAnswer)
    proposed = offer(found, ASKED, "c" * 40, read)
    assert isinstance(proposed, Offer)
    (place / log.FILE).write_bytes(proposed.files[0][1])
    (after,) = outcomes.read(tmp_path)
    assert (before.features.action, before.features.bottleneck) == ("larger-tiles", "l2")
    assert (after.features.action, after.features.bottleneck) == ("wider-loads", "dram")
    assert after.tried.outcomes == before.tried.outcomes, "a label alone"


def test_a_separator_of_lines_inside_a_text_breaks_no_log() -> None:
    spoken = made.tried(1, -5, what="wider\u2028loads", action="larger-tiles")
    found = offer(CORRECTION, ASKED, "c" * 40, lambda _: "".join(map(log.line, (made.opened(), spoken))))
    assert isinstance(found, Offer)


def proposed_pattern(text: str, name: str = "warm-up") -> tuple[Offer, str]:
    found = offer(PatternAnswer(name, text), ASKED, "c" * 40, read)
    assert isinstance(found, Offer)
    return found, found.files[0][1].decode()


def test_a_pattern_says_what_is_left_to_a_person_and_whoever_reads_it_names_that(tmp_path: Path) -> None:
    found, text = proposed_pattern("measure twice, when clocks move")
    path = tmp_path / "warm-up.md"
    path.write_text(text, encoding="utf-8")

    assert found.files[0][0] == "docs/patterns/warm-up.md"
    assert all(f"`{line}`" in found.body for line in MISSING)
    with pytest.raises(pattern.PatternError, match=r"warm-up\.md: when: .*; command: .*; cookbook: "):
        pattern.read(path)
    for line in MISSING:
        text = text.replace(f"{line}: null # fill in before the merge", f"{line}: environment")
    path.write_text(text, encoding="utf-8")
    completed = pattern.read(path)
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

    completed = pattern.read(path)
    assert completed.command == "environment", "what broke out of the text would be here"
    assert "😀" in completed.do
    front, page = text.removeprefix("---\n").split("\n---\n", 1)
    assert len(front.splitlines()) == 9
    for markdown in (page, found.body, completed.do):
        every = [one for block in MarkdownIt("js-default").parse(markdown) for one in (block, *(block.children or ()))]
        assert not [one for one in every if one.type in ("html_block", "html_inline", "link_open", "hr", "image")]
        plain = " ".join(one.content for one in every if one.type == "text")
        assert not any(mark in plain for mark in ("@", "<", "::", "http", "#1 "))


def test_a_pattern_that_is_known_is_added_to() -> None:
    found, longer = proposed_pattern("once <b>more</b>", "known")
    assert longer.startswith("---\nname: known\n---\n")
    assert longer.rstrip().endswith("once `<b>more</b>` (`octocat`, in #12)")
    assert "fill in" not in found.body


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
    """Also on a pull request that is merged: corrections come after that."""
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
    desk.github.files["main", LOG] = (read(LOG) or "").encode()
    desk.github.files[desk.github.refs["heads/main"], LOG] = (read(LOG) or "").encode()

    first = answered(desk, tmp_path, "/kernelgate correct one/1 action=wider-loads: so", "ada", in_pull=False)
    again = answer(desk.bot.step, desk.bot, propose=True)
    assert first == again
    assert answered(desk, tmp_path, "/kernelgate correct one/9 action=wider-loads: so", "ada", in_pull=False) is None
    assert desk.outputs["propose"] == "false"
    taken, refused = replies(desk)
    assert f"#{first} proposes" in taken
    assert "the session one has no try 9; it has 1" in refused


def test_two_corrections_of_one_try_meet_at_the_second_merge_and_both_lines_may_stay(tmp_path: Path) -> None:
    later = replace(ASKED, comment_id=8, login="hubot", at=datetime(2026, 11, 22, 13, tzinfo=UTC))
    answers = ((replace(CORRECTION, action="swizzle", bottleneck="dram"), later), (CORRECTION, ASKED))
    offers = [found for one, by in answers if isinstance(found := offer(one, by, "c" * 40, read), Offer)]
    assert len({one.branch for one in offers}) == 2
    names = ("second", "before", "first")
    contents = (offers[0].files[0][1], (read(LOG) or "").encode(), offers[1].files[0][1])
    for name, content in zip(names, contents, strict=True):
        (tmp_path / name).write_bytes(content)
    merged = subprocess.run(["git", "merge-file", "-p", *names], cwd=tmp_path, capture_output=True, text=True)
    assert merged.returncode == 1, "git stops, and people see both"
    kept = [line for line in merged.stdout.splitlines() if line.startswith("{")]
    (tried,) = figures.try_states([log.event_of(line) for line in kept])
    assert (tried.action, tried.bottleneck) == ("swizzle", "dram"), "the later one, though its line comes first"


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


def test_what_a_session_may_be_called_can_be_answered() -> None:
    assert folder.NAME.fullmatch("a" * 64)
    assert isinstance(parse(f"/kernelgate correct {'a' * 64}/9999 action=x: y"), CorrectionAnswer)
