"""The commands above the table: each can be copied whole, exists, and is not refused in its situation."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kernelgate.ci.document import render
from kernelgate.ci.document.model import Code, Line, Report
from kernelgate.ci.github import command
from kernelgate.ci.github.assemble import Posting
from kernelgate.ci.judge import gate
from kernelgate.ci.judge.gate import BlockCode, Blocker, Decision
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.build import build
from kernelgate.ci.report.gpu import Failure, GpuReport
from kernelgate.ci.report.links import NO_LINKS
from tests.ci.mixes import MADE
from tests.ci.report.browser import PLACES
from tests.ci.report_examples import FAILURES
from tests.gallery.asks import fault

POLICY = Policy()


def written(lines: tuple[Line, ...]) -> Iterator[str]:
    """Every command in these lines, as people see it: a name that is too long is cut."""
    for line in lines:
        for piece in line:
            if isinstance(piece, Code) and re.match(r"/?kernelgate\b", piece.text):
                yield re.sub(r"^`+ ?| ?`+$", "", render.markdown_line((piece,)))


def check(report: Report, decision: Decision, gpus: tuple[GpuReport, ...], on_github: bool) -> int:
    """How many commands stand above the table, each of which is tried."""
    found = [*written((report.now, *report.why)), *written((report.summary,))]
    cases = {one.case.id for gpu in gpus for one in gpu.cases}
    for text in found:
        assert "…" not in text, text
        if not text.startswith("/"):
            assert not fault(text), (text, fault(text))
            continue
        assert on_github, text
        wanted = command.parse(text)
        assert wanted is not None, text
        assert not wanted.fault, (text, wanted.fault)
        if wanted.verb == command.ACCEPT:
            assert command.chosen(wanted, Posting(report, decision, gpus)), text
        else:
            assert {case.rpartition("/")[2] for case in wanted.cases} <= cases, text
    return len(found)


@pytest.mark.parametrize("on_github", [True, False])
@pytest.mark.parametrize("name", sorted(MADE))
def test_each_command_of_a_record_can_be_run(name: str, on_github: bool) -> None:
    made = MADE[name]
    evidence = gate.evidence("l4", made.record, made.verdict, POLICY)
    gpus = (GpuReport("l4", made.record, made.verdict),)
    places = PLACES if on_github else NO_LINKS
    for decision in (gate.decide([evidence]), gate.decide([evidence], refused=(("an artifact is refused",),))):
        report = build(gpus, decision, POLICY, places=places)
        assert report.now, "there is no next step"
        check(report, decision, gpus, on_github)


@pytest.mark.parametrize("on_github", [True, False])
@pytest.mark.parametrize("name", sorted(FAILURES))
def test_each_command_of_a_failure_can_be_run(name: str, on_github: bool) -> None:
    failure = FAILURES[name]
    for shown in (failure, Failure(failure.fault, "the job build stopped at build head", run=failure.run)):
        gpus = (GpuReport("l4", failure=shown),)
        decision = gate.decide([gate.GpuEvidence("l4", fault=shown.fault)])
        report = build(gpus, decision, POLICY, places=PLACES if on_github else NO_LINKS)
        assert check(report, decision, gpus, on_github) == 1


@pytest.mark.parametrize("code", BlockCode)
def test_whatever_blocks_has_a_next_step_that_can_be_done(code: BlockCode) -> None:
    made = MADE["slower"]
    decision = Decision("failure", blockers=(Blocker(code, "l4", "subject"),))
    gpus = (GpuReport("l4", made.record, made.verdict),)
    report = build(gpus, decision, POLICY)
    assert report.now
    check(report, decision, gpus, on_github=False)
