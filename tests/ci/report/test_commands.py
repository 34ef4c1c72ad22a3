"""The commands above the table: each can be copied whole, exists, and is not refused in its situation."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from kernelgate.ci.document import render
from kernelgate.ci.document.model import Report
from kernelgate.ci.github import command
from kernelgate.ci.github.assemble import Posting
from kernelgate.ci.judge import gate
from kernelgate.ci.judge.gate import BlockCode, Blocker, Decision
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.build import build
from kernelgate.ci.report.gpu import GpuReport, of_record
from kernelgate.ci.report.links import NO_LINKS
from tests.ci.mixes import MADE
from tests.ci.report.browser import PLACES
from tests.gallery.asks import SPAN, fault

POLICY = Policy()


def check(report: Report, decision: Decision, gpus: tuple[GpuReport, ...], on_github: bool) -> int:
    """How many commands stand above the table, each of which is tried as people see it: a name too long is cut."""
    shown = map(render.markdown_line, (report.now, *report.why, report.summary))
    found = [text for line in shown for text in SPAN.findall(line) if re.match(r"/?kernelgate\b", text)]
    for text in found:
        assert not fault(text), (text, fault(text))
        if (wanted := command.parse(text)) is None:
            continue
        assert on_github, text
        if wanted.verb == command.ACCEPT:
            assert command.chosen(wanted, Posting(report, decision, gpus)), text
        else:
            cases = {one.case.id for gpu in gpus for one in gpu.cases}
            assert {case.rpartition("/")[2] for case in wanted.cases} <= cases, text
    return len(found)


@pytest.mark.parametrize("on_github", [True, False])
@pytest.mark.parametrize("name", sorted(MADE))
def test_each_command_of_a_record_can_be_run(name: str, on_github: bool) -> None:
    made = MADE[name]
    gpus = (of_record("l4", made.record, made.verdict, POLICY),)
    evidence = gpus[0].evidence
    places = PLACES if on_github else NO_LINKS
    for decision in (gate.decide([evidence]), gate.decide([evidence], refused=(("an artifact is refused",),))):
        report = build(gpus, decision, POLICY, places=places)
        assert report.now, "there is no next step"
        check(report, decision, gpus, on_github)


TRIED = {"event": "try", "base_sha": 20 * "ab", "head_sha": 20 * "cd", "cards": str(Path(__file__).parent)}


def spans(report: Report) -> list[list[str]]:
    shown = "\n".join(map(render.markdown_line, (report.now, *report.why, report.summary)))
    return [shlex.split(text) for text in SPAN.findall(shown) if text.startswith("kernelgate ")]


def check_tried(words: list[str]) -> None:
    """Of `kernelgate try BASE HEAD --cards FOLDER`: as it stands, a command is about the same."""
    assert not fault(shlex.join(words)), words
    assert words[words.index("--cards") + 1] == TRIED["cards"], words
    if words[1] == "cards":
        return
    assert words[1] in ("build", "fuzz") or any(one.startswith("ababab") for one in words), words
    assert any(one.startswith("cdcdcd") for one in words) == (words[1] != "pr"), words


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MADE))
def test_each_command_of_a_try_is_about_its_sides_and_its_cards(name: str) -> None:
    made = MADE[name]
    record = made.record.model_copy(update={"run": made.record.run.model_copy(update=TRIED)})
    evidence = gate.evidence("l4", record, made.verdict, POLICY)
    blockers = [(Blocker(code, "l4", "attention"),) for code in BlockCode]
    for more in ((), *blockers):
        decision = gate.decide([replace(evidence, blockers=more)])
        gpus = (GpuReport(evidence, record, made.verdict),)
        for one in (decision, gate.decide([evidence], refused=(("an artifact is refused",),))):
            for words in spans(build(gpus, one, POLICY)):
                check_tried(words)
