"""A reviewer's answer to a session, from a comment to a pull request."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kernelgate.ci.github.command import Refusal, Requester
from kernelgate.ci.github.propose import Offer
from kernelgate.ci.github.session_review import CorrectionAnswer, PatternAnswer, answer, offer, parse, submit
from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.sessions import figures, log, report
from kernelgate.ci.sessions.log import Corrected
from tests.ci.desk import Desk
from tests.ci.sessions import session_events as made
from tests.fakes.github_server import event

ASKED = Requester(7, 12, "octocat", datetime(2026, 11, 22, 12, tzinfo=UTC))
LOG = ".ci/sessions/one/log.jsonl"
EVENTS = (made.opened(), *made.passed(0.8), made.tried(1, -5, action="tile", bottleneck="l2"))
CORRECTION = CorrectionAnswer("one", 1, "vector-width", None, "it loads wider, too")


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
        ("/kernelgate bench", None),
        ("looks good", None),
    ],
)
def test_an_answer_is_read(body: str, found: object) -> None:
    assert parse(body) == found


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
    assert [(one.action, one.bottleneck) for one in figures.try_states(events)] == [("vector-width", "l2")]
    assert "octocat" in found.body
    assert "octocat" in found.because


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (replace(CORRECTION, number=9), "has no try 9"),
        (replace(CORRECTION, session="other"), "has no session other"),
    ],
)
def test_a_correction_of_nothing_is_refused(found: CorrectionAnswer, said: str) -> None:
    refused = offer(found, ASKED, "c" * 40, read)
    assert isinstance(refused, Refusal)
    assert said in refused.why


def test_a_pattern_is_proposed_and_one_that_is_known_is_added_to() -> None:
    new = offer(PatternAnswer("warm-up", 'say "twice": <b>now</b> @all'), ASKED, "c" * 40, read)
    more = offer(PatternAnswer("known", "once more"), ASKED, "c" * 40, read)

    assert isinstance(new, Offer)
    assert isinstance(more, Offer)
    [(path, content)], [(_, longer)] = new.files, more.files
    text = content.decode()
    assert path == "docs/patterns/warm-up.md"
    assert 'do: "say \\"twice\\": <b>now</b> @all"' in text.split("---")[1]
    assert "<b>" not in text.split("---")[2].replace("`<b>now</b>", "")
    assert longer.decode().startswith("---\nname: known\n---\n")
    assert "octocat" in longer.decode()


def answered(desk: Desk, tmp_path: Path, body: str, login: str) -> int | None:
    """Gives a comment on pull request 1 to the bot."""
    placed = desk.github.comment(1, body, author=login)
    payload = event("issue_comment.created")
    payload["issue"] |= {"number": 1, "pull_request": {"url": "https://api.github.com/repos/o/r/pulls/1"}}
    payload["comment"] |= {"id": placed["id"], "body": body, "created_at": "2026-11-20T10:00:00Z"}
    payload["comment"]["user"] |= {"login": login, "type": "User"}
    path = tmp_path / "event.json"
    path.write_text(json.dumps(payload), encoding="utf-8")
    desk.bot.step.environment["GITHUB_EVENT_PATH"] = str(path)  # type: ignore[index]
    return answer(desk.bot.step, desk.bot)


def test_only_people_with_write_access_are_answered_with_a_pull_request(desk: Desk, tmp_path: Path) -> None:
    desk.github.collaborators["ada"] = "write"
    desk.github.open_pull(head_sha="a" * 40)
    body = "/kernelgate pattern warm-up: measure twice"

    assert answered(desk, tmp_path, body, "mallory") is None
    assert len(desk.github.pulls) == 1
    assert "only people with write access" in " ".join(desk.github.bodies(1))

    number = answered(desk, tmp_path, body, "ada")

    pull = desk.github.pulls[number or 0]
    assert "ada" in (pull.body or "")
    assert "measure twice" in desk.github.files[pull.head_ref, "docs/patterns/warm-up.md"].decode()
    assert f"#{number} proposes" in " ".join(desk.github.bodies(1))


def test_a_report_is_posted_once_however_often_it_is_submitted(desk: Desk) -> None:
    number = desk.github.open_pull(head_sha="a" * 40).number
    events = (*EVENTS, log.SessionNote(said="is it the cache?", kind="question"))
    text = report.for_review(events, Policy(), made.clock(20))

    submit(desk.bot, number, text)
    submit(desk.bot, number, text)

    (body,) = desk.github.bodies(number)
    assert "is it the cache?" in body
    assert "/kernelgate correct one/TRY" in body
