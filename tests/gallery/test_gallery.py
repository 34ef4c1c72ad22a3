"""Every situation is asked the five questions; the readers are held to planted faults; the page is looked at."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.ci.report import browser
from tests.gallery import page
from tests.gallery.asks import ask, fault
from tests.gallery.situations import Situation, situations

BY_NAME = {one.name: one for one in situations()}


@pytest.mark.parametrize("one", situations(), ids=lambda one: one.name)
def test_five_questions_are_answered_truly(one: Situation) -> None:
    assert ask(one.comment, one.truth) == {}


def test_a_measurement_that_starts_by_itself_is_announced_and_no_other() -> None:
    again = {one.name for one in situations() if one.posting.decision.again}
    assert {one.name for one in situations() if "measured again by itself" in one.comment} == again
    assert {"runner lost", "slower after two processes"} <= again


# ---- the readers -----------------------------------------------------------------------------------------------------

FAULTS = [
    ("one of four faster", "faster", "slower", "how much"),
    ("one of four faster", r"12\.80?%", "1.28%", "how much"),
    ("nothing changed", "no change", "3.1% faster", "how much"),
    ("one of four faster", "Sure:", "Likely:", "how sure"),
    ("one of four faster", r"12\.7[^,]*", "so much", "how sure"),
    ("noisy", "cannot tell", "no change", "how sure"),
    ("measured: cards/swiglu_slower", "more DRAM traffic, [^;.]*", "more bank conflicts", "why"),
    ("race", "(?i)race", "trace of it", "why"),
    ("one of four slower", "Blocks", "Does not block", "blocks"),
    ("its own workflow", "Held", "Does not block", "blocks"),
    ("new spills", "kernelgate resources", "kernelgate resources --registers", "now"),
    ("noisy", "/kernelgate bench", "/kernelgate measure", "now"),
    ("runner lost", r"\*\*Now:\*\*", "", "now"),
]


@pytest.mark.parametrize(("name", "true", "planted", "question"), FAULTS)
def test_a_planted_fault_is_noticed(name: str, true: str, planted: str, question: str) -> None:
    one = BY_NAME[name]
    comment = one.comment
    text, count = re.subn(true, planted, comment)
    assert count, f"{true} is not in {comment}"
    assert question not in ask(comment, one.truth)
    assert question in ask(text, one.truth)


OTHER_WORDS = """### ❌ The worst of 4 cases is slower by 4.9%: the merge is blocked

This is certain (4.8 to 5.0%); it was not profiled, since no profile was asked for.

**Next:** `kernelgate pr --base 9f8e7d6` tries a fix.
"""


def test_other_words_of_the_same_meaning_are_understood() -> None:
    assert ask(OTHER_WORDS, BY_NAME["one of four slower"].truth) == {}
    held = OTHER_WORDS.replace("is slower by 4.9%: the merge is blocked", "is very likely slower by 30%: held")
    held = held.replace("This is certain (4.8 to 5.0%)", "Between 29.5% and 30.5%")
    assert ask(held, BY_NAME["slower after two processes"].truth) == {}


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        ("kernelgate bench --base 9f8e7d6 --case a -o run.json", True),
        ("kernelgate bench --case a …", False),
        ("/kernelgate accept a because it is needed", True),
        ("/kernelgate accept a", False),
    ],
)
def test_a_command_is_parsed_by_what_runs_it(written: str, whole: bool) -> None:
    assert (fault(written) == "") is whole
    assert fault("/kernelgate bench", {"bench"})


# ---- the page --------------------------------------------------------------------------------------------------------

LINES = """
() => Array.from(document.querySelectorAll('.phone')).map(phone => {
  const top = phone.getBoundingClientRect().top;
  const now = Array.from(phone.children).find(one => /^(Now|To unblock|Next):/.test(one.textContent));
  return now ? now.getBoundingClientRect().bottom - top : 0;
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
    assert said == []
    assert {name: end for name, end in ends.items() if end > browser.PHONE[1]} == {}
    assert [name for name, end in ends.items() if not end] == []
