"""One issue for each culprit: what it says, when it is open, and that there are never two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from kernelgate.bench.core.errors import UsageError
from kernelgate.ci.github.culprits import LABELS, issue_line, put
from tests.ci.desk import Desk
from tests.fakes.github_server import Json

BAD, GOOD, FIX = "b" * 40, "a" * 40, "f" * 40
OPEN = issue_line(f"culprit commit={BAD}", "open")
"""The last line of an open issue on BAD, by which it is found again."""


def case(name: str = "s512", change: float = 2.0, **facts: Any) -> Json:
    given = {"card": "attention", "case": name, "gpu": "NVIDIA L4", "change_pct": change}
    interval = [change - 0.1, change + 0.1]
    return {**given, "interval_pct": interval, "why": "measured", "state": "slower", "by": "", "record": None} | facts


def told(folder: Path, *cases: Json, **facts: Any) -> Path:
    culprit = {"repository": "octo-org/kernels", "previous": GOOD, "commit": BAD, "commits": 1, "cases": list(cases)}
    data = {"schema": "kernelgate.culprits/1", "culprits": [culprit | facts], "searches": []}
    (folder / "culprits.json").write_text(json.dumps(data), "utf-8")
    return folder


def flat(markdown: str) -> list[Token]:
    """What a reader of Markdown makes of it."""
    return [one for block in MarkdownIt().enable("table").parse(markdown) for one in (block, *(block.children or ()))]


def post(desk: Desk, folder: Path) -> Json:
    """The one issue there is, after the bot was at it."""
    put(desk.bot, folder)
    [issue] = desk.github.issues.values()
    return issue


def test_a_culprit_gets_one_issue_that_says_what_how_sure_and_what_to_do(desk: Desk, tmp_path: Path) -> None:
    desk.github.open_pull(number=7, merge_commit_sha=BAD, merged_at="2026-11-20T09:00:00Z", state="closed")
    issue = post(desk, told(tmp_path, case(), case("s640", 1.0)))
    assert issue["title"] == "attention/s512 is 2.0% slower and 1 more case: bbbbbbb"
    assert issue["assignees"] == []
    assert [label["name"] for label in issue["labels"]] == [LABELS["commit"]]
    body = issue["body"]
    assert f"[`{BAD[:7]}`](https://github.com/octo-org/kernels/commit/{BAD})" in body
    assert "[`#7`](https://github.com/octo-org/kernels/pull/7)" in body
    assert "**+2.0%** [+1.9, +2.1]" in body
    assert f"kernelgate bench --base {GOOD} --head {BAD} --case attention/s512 --case attention/s640" in body
    assert body.splitlines()[-1] == OPEN


def test_a_drift_gets_an_issue_of_its_own_that_blames_nobody(desk: Desk, tmp_path: Path) -> None:
    post(desk, told(tmp_path, case()))
    put(desk.bot, told(tmp_path, case(), kind="drift", commits=60))
    _, issue = desk.github.issues.values()
    assert [label["name"] for label in issue["labels"]] == ["kernelgate: drift"]
    assert issue["title"] == f"attention/s512 is 2.0% slower: drift {GOOD[:7]}..{BAD[:7]}"
    assert "60 commits" in issue["body"]
    assert "None of them made most of it" in issue["body"]


def test_it_closes_when_all_is_fixed_or_accepted_and_opens_again(desk: Desk, tmp_path: Path) -> None:
    post(desk, told(tmp_path, case()))
    before = len(desk.github.writes())
    post(desk, told(tmp_path, case()))
    assert desk.github.writes()[before:] == [], "the next night changes nothing"
    assert "s640" in post(desk, told(tmp_path, case(), case("s640")))["body"]
    half = post(desk, told(tmp_path, case(state="fixed", by=FIX), case("s640")))
    assert (half["state"], desk.github.comments) == ("open", {})
    done = told(tmp_path, case(state="fixed", by=FIX), case("s640", state="accepted", by="by somebody: for numerics"))
    for _ in range(2):
        closed = post(desk, done)
        [said] = desk.github.bodies(closed["number"])
        assert (closed["state"], closed["state_reason"]) == ("closed", "completed")
        assert f"**Fixed** by [`fffffff`](https://github.com/octo-org/kernels/commit/{FIX})" in said
        assert "**Accepted** by somebody: for numerics: `attention/s640`" in said
    again = post(desk, told(tmp_path, case(), case("s640")))
    assert (again["state"], again["body"].splitlines()[-1]) == ("open", OPEN)
    assert "Open again" in desk.github.bodies(again["number"])[-1]


@pytest.mark.parametrize("now", [case(), case(state="fixed", by=FIX)], ids=["slower", "fixed"])
def test_what_a_person_closed_or_opened_is_left_alone(desk: Desk, tmp_path: Path, now: Json) -> None:
    issue = post(desk, told(tmp_path, case()))
    issue["state"] = "closed"
    assert post(desk, told(tmp_path, now))["state"] == "closed"
    issue |= {"state": "open", "body": issue["body"].replace("state=open", "state=closed")}
    assert post(desk, told(tmp_path, now))["state"] == "open"
    assert desk.github.comments == {}


def test_a_strangers_issue_with_the_same_last_line_is_none_of_ours(desk: Desk, tmp_path: Path) -> None:
    issue = post(desk, told(tmp_path, case()))
    planted = issue | {"number": 99, "user": desk.github._user("stranger"), "title": "planted"}
    desk.github.issues = {99: planted}
    put(desk.bot, told(tmp_path, case()))
    assert len(desk.github.issues) == 2
    assert desk.github.issues[99] == planted


def test_hostile_text_of_a_record_stays_text(desk: Desk, tmp_path: Path) -> None:
    hostile = "a`|@everyone<!-- x --><img src=x>"
    fixed = case(hostile, gpu=hostile, why=hostile)
    issue = post(desk, told(tmp_path, fixed))
    begun = flat(issue["body"])
    post(desk, told(tmp_path, fixed | {"state": "accepted", "by": hostile}))
    [closing] = desk.github.bodies(issue["number"])
    for tokens, html in ((begun, [OPEN]), (flat(closing), [])):
        assert [one.content.strip() for one in tokens if one.type.startswith("html")] == html
        assert not [one for one in tokens if one.type == "text" and ("@" in one.content or "<" in one.content)]


def test_what_is_no_such_file_is_refused_in_a_sentence(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "culprits.json").write_text('{"schema": "kernelgate.culprits/1", "culprits": [{}]}', "utf-8")
    with pytest.raises(UsageError, match="is not what `kernelgate history culprits` writes"):
        put(desk.bot, tmp_path)
