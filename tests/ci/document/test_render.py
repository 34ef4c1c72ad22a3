"""The report written down: nothing that a stranger wrote does anything, and nothing is longer than GitHub takes."""

from __future__ import annotations

import io
import re
import unicodedata
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from kernelgate.bench.core.documentation import DOCS
from kernelgate.bench.record import (
    Build,
    Card,
    Check,
    CheckFinding,
    Device,
    Environment,
    FuzzResult,
    KernelFacts,
    Note,
    Profile,
    Run,
    RunRecord,
    Telemetry,
    timed_cases,
)
from kernelgate.ci.document import render
from kernelgate.ci.document.model import Report
from kernelgate.ci.judge.case import Outcome, RecordVerdict
from kernelgate.ci.judge.gate import Fault
from kernelgate.ci.judge.validity import Finding
from kernelgate.ci.policy.policy import Gates, Policy
from kernelgate.ci.report.build import BuiltReport, of_verdict
from kernelgate.ci.report.gpu import Baseline, Failure
from tests import runs
from tests.ci.report_examples import NINE, case, failure_reported, judge, noisy, record, report, reports, same, slower
from tests.runs import process, run_record

NASTY = [
    "@octocat", "@org/team", "#1", "GH-1", "owner/repo#1", "owner@9f8e7d6c5b4a39281706f5e4d3c2b1a098765432",
    "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432", "https://example.org", "http://a", "www.example.org", "ftp://a",
    "me@example.org", "mailto:me", "[a](b)", "![a](b)", "[a]: b", "[^1]", "[!NOTE]", "- [x] ", "<b>", "</details>",
    "<script>alert(1)</script>", "<!-- kernelgate -->", "-->", "<img src=x onerror=y>", "&lt;", "&#64;octocat", "|",
    "\\|", "\\", "`", "``", "```", "~~~", "~~a~~", "\n", "\r\n", "\n\n# heading\n", "\u2028", "---", "===", "***",
    "1. ", "> ", "    ", "$a$", "$$", "$`a`$", ":tada:", "\u202e", "\u200b", "\u2066", "\ufeff", "\x00", "\x1b[31m",
    "\u3164", "a\u0301\u0302", "שלום", "{{ 7 }}", "{% raw %}", "'", '"', "$(rm -rf /)", "; rm -rf /", "</style>",
    "]]>", "url(http://a)", "NVIDIA ", "✅", "❌ Slower", "JIRA-123", "a.b.com", "xmpp:a@b",
]  # fmt: skip
HOSTILE = st.lists(st.sampled_from(NASTY) | st.text(max_size=8), min_size=1, max_size=6).map("".join).filter(bool)


def hostile_record(text: str) -> RunRecord:
    timed = process(
        {"base": (1.0,) * 3, "head": (1.1,) * 3},
        telemetry=Telemetry(sm_mhz=1.0, throttle_reasons=(text,)),
        graph_us={"head": 1.0},
    )
    named = runs.case(text, [timed], axes={"S": 1, "B": 1, "H": 1, "dtype": text, text: text}, label=text)
    device = Device(name=text, uuid=text, driver=text, sm_count=12345678)
    facts = KernelFacts(target=text, name=text, registers=1, instructions={text: 1})
    return run_record(
        (named, case(512, 32, 321.4, 4.9)),
        Environment(device=device, torch=text, cuda=text, python=text, os=text, host=text),
        run=Run(repository=text, base_sha=text, head_sha=text, run_id=12345678, created_at=text),
        builds=(
            Build(side="base", sha=text, seconds=1.0, targets=(text,), library_sha256=text),
            Build(side="head", kernels=(facts,)),
        ),
        checks=(Check(kind="fuzz", status="skipped", reason=text, seed=12345678), hostile_finding(text)),
        profile=(Profile(case=text, side="head", metrics={text: text}, report=text),),
        cards=(Card(name=text, label=text, reference=text),),
        notes=(
            Note(text=text),
            *(Note(code=code, card=text, text=text) for code in ("head_alone", "card_changed", "no_card_on_base")),
        ),
    )


def hostile_finding(text: str) -> Check:
    finding = CheckFinding(text=text, kernel=text, file=text, line=1, tool=text)
    known = finding.model_copy(update={"on_base": True})
    facts = {"reason": text, "tools": (text,), "cases": (text,)}
    return Check(kind="sanitizer", status="failed", asked=2, run=1, findings=(finding, known), **facts)


def hostile_reports(text: str) -> dict[str, Report]:
    return {kind: one.report for kind, one in hostile_reported(text).items()}


def hostile_reported(text: str) -> dict[str, BuiltReport]:
    """Every kind of report, with `text` wherever a record, a verdict or a failure holds text."""
    run = hostile_record(text)
    here, there = timed_cases(run)
    found = (Finding(text, text, True), Finding(text, text, False))

    def renamed(verdict: object, **changes: object) -> object:
        return replace(verdict, id=here.id, sentence=text, **changes)  # type: ignore[type-var]

    blocked = (renamed(slower(there, 5.0)), same(there, 0.0))
    unclear = (renamed(noisy(there, 0.0, 2.0), findings=found), same(there, 0.0))
    taken = Run(head_sha=text, created_at=text)
    stored = Baseline(judge(Outcome.REGRESSED, *blocked, against=text), taken, Environment(torch=text, cuda="1"))
    wrong = Check(
        kind="fuzz",
        status="failed",
        results=(FuzzResult(id=text, seed=12345678, passed=False, message=text, repeat=text),),
    )
    unnamed = FuzzResult(id=text, seed=1, axes={text: text}, passed=False, max_abs_error=1.0)
    failure = Failure(Fault.BUILD, text, target=text, log=(text, text))
    policy = Policy()
    return {
        "slower": of_verdict(run, judge(Outcome.REGRESSED, *blocked), policy, stored),
        "cannot tell": of_verdict(run, judge(Outcome.INCONCLUSIVE, *unclear), policy),
        "refused": of_verdict(run, RecordVerdict(text, Outcome.INCONCLUSIVE, text, (), text, text), policy),
        "wrong": of_verdict(run.model_copy(update={"checks": (wrong,)}), judge(Outcome.INCONCLUSIVE), policy),
        "unnamed": of_verdict(
            run.model_copy(update={"checks": (wrong.model_copy(update={"results": (unnamed,)}),)}),
            judge(Outcome.INCONCLUSIVE),
            policy,
        ),
        **{fault.value: failure_reported(replace(failure, fault=fault), run.run) for fault in Fault},
    }


PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
OURS = re.compile(r"(<details><summary>[\w ,:()]+</summary>|</details>|<!-- kernelgate -->)\n?")
INERT = {"text", "code_inline", "strong_open", "strong_close", "link_open", "link_close"}
# What GitHub makes of plain text once the Markdown is parsed.
ALIVE = re.compile(
    r"""
      @\w | [#]\d | \bgh-\d | \b[a-z]+-\d+\b            # mention, issue, another tracker's issue
    | \b[0-9a-f]{7,}\b                                 # commit
    | https?: | ftp: | www\. | mailto: | xmpp: | \S@\S | [a-z]\.[a-z]    # address
    | :[\w+-]+: | \$                                   # emoji, mathematics
    | [<>&\[\]{}\\`|~*_](?![+−\d ])(?<!\d\])           # anything else that Markdown or HTML gives a meaning
    """,
    re.VERBOSE | re.IGNORECASE,
)


def skeleton(tokens: list[Token]) -> list[str]:
    return [f"{token.type} {token.content if token.type == 'html_block' else ''}" for token in tokens]


@cache
def harmless_skeleton(kind: str) -> list[str]:
    return skeleton(PARSER.parse(render.comment(hostile_reports("harmless")[kind])))


@given(HOSTILE)
@example(" ".join(NASTY[::3]))
@example(" ".join(NASTY[1::3]))
@example(" ".join(NASTY[2::3]))
@settings(max_examples=6)
def test_no_text_of_a_record_does_anything_in_a_comment(text: str) -> None:
    """Nor hides anything there; and the marker stands once, at the end."""
    for kind, made in hostile_reported(text).items():
        written = render.comment(made.report)
        tokens = PARSER.parse(written)
        assert skeleton(tokens) == harmless_skeleton(kind)
        for token in tokens:
            if token.type == "html_block":
                assert all(OURS.fullmatch(line) for line in token.content.splitlines())
            children = token.children or []
            assert {child.type for child in children} <= INERT
            for child in children:
                assert child.type != "link_open" or str(child.attrs["href"]).startswith(f"{DOCS}/")
                assert child.type != "text" or not ALIVE.search(child.content), child.content
        assert written.count("<!--") == 1
        assert written.endswith(f"\n{render.MARKER}\n")
        nothing_is_hidden(written)


def nothing_is_hidden(written: str) -> None:
    for character in set(written) - {"\n", "\ufe0f"}:
        assert unicodedata.category(character)[0] not in "CM"
        assert unicodedata.bidirectional(character) not in ("R", "AL")


@cache
def large(count: int, unchanged: bool = False) -> Report:
    made = tuple(case(16 * (index + 1), 8, 50.0, 0.0) for index in range(count))
    verdicts = [same(one, 0.0) if unchanged else slower(one, 5.0) for one in made]
    return report(record(made), judge(Outcome.EQUIVALENT if unchanged else Outcome.REGRESSED, *verdicts), Gates())


@pytest.mark.parametrize(("count", "limit", "unchanged"), [(90, 65_536, False), (27, 4_000, True)])
def test_a_comment_stays_below_the_limit_with_its_verdict(count: int, limit: int, unchanged: bool) -> None:
    text = render.comment(large(count, unchanged), limit)
    assert len(text) < limit < len(render.comment(large(count, unchanged), 10**9))
    assert text.startswith(
        "### ✅ Does not block: no change" if unchanged else "### ❌ Blocks: all 90 cases up to 5.0% slower"
    )
    assert text.endswith(f"\n{render.MARKER}\n")
    assert f"all {count} cases" in text
    assert text.count("<details>") == text.count("</details>")


def test_long_strings_are_cut_before_they_fill_the_comment() -> None:
    for text in ("x" * 100_000, "`` " * 50_000):
        assert all(len(render.comment(said)) < render.COMMENT_LIMIT for said in hostile_reports(text).values())


def test_many_long_strings_leave_the_verdict_standing() -> None:
    finding = Finding("odd", "@odd " * 200, False)
    verdicts = [replace(slower(one, 5.0), sentence="`s" * 300, findings=(finding,) * 20) for one in NINE]
    run = record(NINE, notes=(Note(text="`n " * 300),) * 300)
    text = render.comment(report(run, judge(Outcome.REGRESSED, *verdicts), Gates()))
    assert len(text) < render.COMMENT_LIMIT
    assert text.startswith("### ❌ Blocks: all 9 cases up to 5.0% slower")
    assert "warnings (180)" in text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_the_words_and_a_log_the_markdown() -> None:
    said, shown, log = reports()["mixed"], Terminal(), io.StringIO()
    render.show(said, shown)
    render.show(said, log)
    assert log.getvalue() == render.comment(said)
    last = shown.getvalue().rpartition("\n\n")[2]
    assert last.split() == render.first_line(said).split()


def columns(line: str) -> int:
    """How wide a line is: a picture takes two columns."""
    return sum(1 + (unicodedata.east_asian_width(character) == "W") for character in line)


@pytest.mark.parametrize("name", sorted(reports()))
def test_no_word_is_cut_nothing_is_wider_than_the_terminal_and_the_verdict_is_last(name: str) -> None:
    said = reports()[name]
    shown = render.terminal(said, details=False)
    for line in shown.splitlines():
        assert columns(line) <= render.WIDTH or not line.strip().count(" "), line  # what cannot be broken
    for row in said.cases.rows if said.cases else ():
        assert " ".join(render.plain_line(row[3]).split()) in " ".join(shown.split())
    for words in (said.headline, said.under, *said.checks, *said.remarks):
        assert " ".join(render.plain_line(words).split()) in " ".join(shown.split())
    for printed in (shown, render.terminal(said)):
        last = printed.rstrip("\n").rpartition("\n\n")[2]
        assert " ".join(last.split()) == render.first_line(said)


@given(HOSTILE)
@settings(max_examples=15)
def test_no_text_of_a_record_steers_the_terminal(text: str) -> None:
    for said in hostile_reports(text).values():
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", render.terminal(said))
