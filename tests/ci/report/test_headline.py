"""The first line: it, the check's conclusion and the words on blocking agree, whatever was found, on every surface."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgate.bench.record import Calls, Expected
from kernelgate.ci.document import render
from kernelgate.ci.github.assemble import Posting
from kernelgate.ci.github.publish import line_notes
from kernelgate.ci.judge.gate import Decision, Fault
from kernelgate.ci.policy.policy import Gates, Policy
from kernelgate.ci.report import headline
from kernelgate.ci.report.build import build, compared
from kernelgate.ci.report.gpu import GpuReport
from tests.ci.mixes import BLOCKERS, MADE, MIXES, Mix, decided
from tests.ci.report_examples import EXAMPLES

POLICY = Policy()
RED, GREEN = "❌🛑🔧⛔", "✅"
PATCHES = [("csrc/k.cu", "@@ -1 +1 @@\n-a\n+b")]


def surfaces(gpus: list[GpuReport], found: Decision) -> list[str]:
    """What each place shows first: comment, check's title and summary, annotations, terminal."""
    said = build(gpus, found, POLICY)
    posting = Posting(said, found, tuple(gpus))
    written = render.comment(said)
    last = render.terminal(said, details=False).rstrip("\n").rpartition("\n\n")[2]
    shown = [written.splitlines()[0].removeprefix("### "), posting.title, last]
    return [*shown, *(note.title for note in line_notes(posting, PATCHES, ["csrc/"]))]


def agrees(line: str, conclusion: str) -> bool:
    """Whether a first line says what the check does."""
    expected = {"failure": ("Blocks", RED), "success": ("Does not block", GREEN), "action_required": ("Held", "❔⚠🛠➖")}
    says, marks = expected.get(conclusion, ("Does not block", "⚠❔🛠➖"))
    said = re.findall(r"\b(?:Blocks|Held|Does not block)\b", line)
    return said == [says] and re.match(r"\S+ (Blocks|Held|Does not block)", line) is not None and line[0] in marks


KINDS: list[Mix] = [
    *((name, None, (), ()) for name in sorted(MADE)),
    *(("slower", fault, (), ()) for fault in Fault),
]
EVERYTHING_ELSE = list(itertools.product(BLOCKERS, ((), (("one case was not timed",),))))


def first_line(mixes: list[Mix], described: bool = True, refused: bool = False) -> tuple[str, str]:
    gpus, found = decided(mixes, described, refused)
    return render.plain_line(headline.headline(gpus, found, Gates())), found.conclusion


@pytest.mark.parametrize("mix", KINDS, ids=lambda mix: f"{mix[0]}-{mix[1]}")
def test_the_mark_the_words_and_the_check_agree(mix: Mix) -> None:
    """Every verdict and fault with everything that may block or be missing, and beside every other on two GPUs."""
    for blockers, missing in EVERYTHING_ELSE:
        for described, refused in itertools.product((True, False), repeat=2):
            line, conclusion = first_line([(*mix[:2], blockers, missing)], described, refused)
            assert agrees(line, conclusion), (line, conclusion)
    for other in KINDS:
        line, conclusion = first_line([mix, other])
        assert agrees(line, conclusion), (other, line, conclusion)


@given(st.lists(MIXES, min_size=1, max_size=3), st.booleans(), st.booleans())
@settings(max_examples=15)
def test_every_surface_says_the_first_line(mixes: list[Mix], described: bool, refused: bool) -> None:
    gpus, found = decided(mixes, described, refused)
    shown = surfaces(gpus, found)
    assert not re.search(r"`[();:,.]+`", shown[0]), "punctuation shown as code"
    written, *others = (" ".join(line.split()) for line in shown)
    plain = written.replace("`", "").replace("\ufe0f", "")
    assert all(other == plain for other in others)
    assert agrees(plain, found.conclusion), (plain, found)


def test_a_record_that_contradicts_itself_absolves_nobody() -> None:
    """No measurement gives it; whoever wrote it may have meant to hide something, or to be called faster."""
    example = EXAMPLES["faster"]()
    made = example.record
    timing = made.processes[0].timings[0]
    impossible = timing.model_copy(update={"calls": {side: Calls(made=1, compared=400) for side in ("base", "head")}})
    processes = tuple(one.model_copy(update={"timings": (impossible,)}) for one in made.processes)
    whole = Expected(cards=made.cards, cases=made.cases, processes=len(processes))
    record = made.model_copy(update={"processes": processes, "expected": whole})
    report, code = compared(example.verdict, record, POLICY, named=False)
    line = render.plain_line(report.headline)
    assert code == 3
    assert "ot verified: the record cannot be used: it contradicts itself" in line
    assert "not your fault" not in line.lower()
