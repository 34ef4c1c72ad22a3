"""Every situation is asked the five questions; the readers are held to planted faults; the page is looked at."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.ci.report import browser
from tests.gallery import page
from tests.gallery.asks import SPAN, ask, fault
from tests.gallery.situations import Situation, situations

BY_NAME = {one.name: one for one in situations()}


@pytest.mark.parametrize("one", situations(), ids=lambda one: one.name)
def test_five_questions_are_answered_truly(one: Situation) -> None:
    assert ask(one.comment, one.truth) == {}


def test_no_code_is_made_of_marks_alone() -> None:
    shown = {span for one in situations() for span in SPAN.findall(one.comment)}
    assert {span for span in shown if not re.search(r"\w", span)} <= {'";"'}, "a compiler's own words"


def test_a_measurement_that_starts_by_itself_is_announced_and_no_other() -> None:
    again = {one.name for one in situations() if one.posting.decision.again}
    assert {one.name for one in situations() if "measured again by itself" in one.comment} == again
    assert {"runner lost", "slower after two processes"} <= again


def test_what_the_first_line_tells_of_another_gpu_is_not_told_again() -> None:
    assert BY_NAME["slower on one, faster on the other"].comment.count("15.00% faster on") == 1


def test_there_are_eighty() -> None:
    assert len(BY_NAME) == len(situations()) >= 80


# ---- the readers -----------------------------------------------------------------------------------------------------

FAULTS = [
    ("one of four faster", "faster", "slower", "how much"),
    ("one of four slower", "slower", "faster", "how much"),
    ("one of four faster", r"12\.80?%", "128%", "how much"),
    ("one of four faster", r"12\.80?%", "1.28%", "how much"),
    ("measured: cards/swiglu_slower", r"up to 4\.4%", "up to 44%", "how much"),
    ("nothing changed", "no change", "3.1% faster", "how much"),
    ("noisy", "cannot tell", "3.1% slower, cannot tell", "how much"),
    ("odd N wrong", "wrong result", "2.0% faster", "how much"),
    ("one of four faster", "Sure:", "Likely:", "how sure"),
    ("one of four faster", r"12\.7[^,]*", "so much", "how sure"),
    ("noisy", "cannot tell", "no change", "how sure"),
    ("measured: cards/swiglu_slower", "more DRAM traffic, [^;.]*", "more bank conflicts", "why"),
    ("measured: cards/swiglu_slower", r"\*\*Why", "By the way", "why"),
    ("race", "(?i)race", "trace of it", "why"),
    ("one of four slower", "Blocks: ", "", "blocks"),
    ("one of four slower", "Blocks", "Does not block", "blocks"),
    ("nothing changed", "Does not block", "Blocks", "blocks"),
    ("its own workflow", "Held", "Does not block", "blocks"),
    ("odd N wrong", "kernelgate fuzz", "kernelgate fuss", "now"),
    ("new spills", "kernelgate resources", "kernelgate resources --registers", "now"),
    ("noisy", "/kernelgate bench", "/kernelgate measure", "now"),
    ("first card", "nothing to do", "nothing to do but `/kernelgate bench`", "now"),
    ("runner lost", r"\*\*Now:\*\*", "", "now"),
    ("less accurate", "kernelgate accuracy", "kernelgate bench -o", "now"),
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
        ("kernelgate history next", True),
        ("kernelgate bench --case a …", False),
        ("kernelgate profile --bogus", False),
        ("/kernelgate accept a because it is needed", True),
        ("/kernelgate accept a", False),
        ("/kernelgate bench", True),
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


def test_the_page_counts_what_the_questions_find() -> None:
    assert f"all five: {len(BY_NAME)} of {len(BY_NAME)}" in page.html()
