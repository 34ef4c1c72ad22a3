"""Every situation is asked the five questions; the readers are held to planted faults; the page is looked at.

And docs/examples, which GitHub renders for people who want to see a comment before they try anything.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.ci.report import browser
from tests.gallery import page
from tests.gallery.asks import ask
from tests.gallery.examples import FOLDER, texts
from tests.gallery.situations import Situation, situations

BY_NAME = {one.name: one for one in situations()}


@pytest.mark.slow
@pytest.mark.parametrize("one", situations(), ids=lambda one: one.name)
def test_five_questions_are_answered_truly(one: Situation) -> None:
    assert ask(one.comment, one.truth) == {}


def test_the_examples_are_the_comments_of_today() -> None:
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")} == dict(texts())


@pytest.mark.slow
def test_a_measurement_that_starts_by_itself_is_announced_and_no_other() -> None:
    again = {one.name for one in situations() if one.posting.decision.again}
    assert {one.name for one in situations() if "measured again by itself" in one.comment} == again
    assert {"runner lost", "slower after two processes"} <= again


FAULTS = [
    ("one of four faster", "faster", "slower", "how much"),
    ("one of four faster", "Sure:", "Likely:", "how sure"),
    ("measured: cards/swiglu_slower", "more DRAM traffic, [^;.]*", "more bank conflicts", "why"),
    ("one of four slower", "Blocks", "Does not block", "blocks"),
    ("noisy", "/kernelgate bench", "/kernelgate measure", "now"),
]
"""One a question."""


@pytest.mark.parametrize(("name", "true", "planted", "question"), FAULTS)
def test_a_planted_fault_is_noticed(name: str, true: str, planted: str, question: str) -> None:
    one = BY_NAME[name]
    comment = one.comment
    text, count = re.subn(true, planted, comment)
    assert count, f"{true} is not in {comment}"
    assert question not in ask(comment, one.truth)
    assert question in ask(text, one.truth)


LINES = """
() => Array.from(document.querySelectorAll('.phone')).map(phone => {
  const top = phone.getBoundingClientRect().top;
  const now = Array.from(phone.children).find(one => /^(Now|To unblock|Next):/.test(one.textContent));
  return now ? now.getBoundingClientRect().bottom - top : 0;
})
"""


WIDER = """
() => Array.from(document.querySelectorAll('.phone')).map(phone => {
  const table = phone.querySelector(':scope > table');
  return table ? table.scrollWidth - table.clientWidth : 0;
})
"""


@pytest.mark.slow
def test_the_first_screen_of_a_phone_holds_the_answers(tmp_path: Path) -> None:
    if browser.executable() is None:
        pytest.fail(browser.MISSING)
    with browser.opened() as tab:
        tab.set_viewport_size({"width": browser.PHONE[0], "height": browser.PHONE[1]})
        said = browser.shown(tab, tmp_path, page.html())
        assert tab.evaluate("document.documentElement.scrollWidth") <= browser.PHONE[0]
        ends = dict(zip(BY_NAME, tab.evaluate(LINES), strict=True))
        wider = dict(zip(BY_NAME, tab.evaluate(WIDER), strict=True))
    assert said == []
    assert {name: end for name, end in ends.items() if end > browser.PHONE[1]} == {}
    assert [name for name, end in ends.items() if not end] == []
    assert [name for name, pixels in wider.items() if pixels] == [], "the table is read without scrolling"
