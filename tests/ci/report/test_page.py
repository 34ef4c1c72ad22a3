"""The page: one file that needs nothing else, in which nothing that a stranger wrote does anything."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from kernelgate.bench.core.documentation import DOCS
from kernelgate.bench.record import RunRecord
from kernelgate.ci.document.model import Mark
from kernelgate.ci.judge.gate import Fault
from kernelgate.ci.policy.policy import Gates, Policy
from kernelgate.ci.report.build import of_verdict
from kernelgate.ci.report.links import Links
from kernelgate.ci.report.page import write
from tests.ci.document.test_render import HOSTILE, hostile_reported, nothing_is_hidden
from tests.ci.report.browser import Elements
from tests.ci.report.situations import situation
from tests.ci.report_examples import EXAMPLES, FAILURES, all_reported

POLICY = Policy()


@cache
def harmless_elements(kind: str) -> list[str]:
    return Elements(write(hostile_reported("harmless")[kind], Gates())).elements


def without_code(elements: list[str]) -> list[str]:
    """A piece of text may be shown as code on one page and as words, which may be strong, on another."""
    return [element for element in elements if element not in ("code ", "/code", "strong ", "/strong")]


@pytest.mark.slow
@given(HOSTILE)
@settings(max_examples=8)
def test_no_text_of_a_record_becomes_an_element_of_the_page(text: str) -> None:
    for kind, made in hostile_reported(text).items():
        if kind in (Fault.RUNNER, Fault.OURS, Fault.DISPUTED):  # of the same form as "build"
            continue
        written = write(made, Gates())
        page = Elements(written)
        assert without_code(page.elements) == without_code(harmless_elements(kind))
        assert {value for value in page.values if not value.startswith(("href=#", f"href={DOCS}"))} == set()
        nothing_is_hidden(written)


CLOSING = "</script><script>alert(1)</script><!--<script>\u2028'\"&amp;"


def test_a_case_cannot_end_the_data() -> None:
    """Its id is in the JSON as it is, and the JSON is one element that ends where it should."""
    hostile = EXAMPLES["minimal_opaque_ids"]()
    text = hostile.record.model_dump_json().replace("matmul/large", json.dumps(CLOSING)[1:-1])
    made = RunRecord.model_validate_json(text)
    first, *rest = hostile.verdict.cases
    verdict = replace(hostile.verdict, cases=(replace(first, id=CLOSING), *rest))
    page = write(of_verdict(made, verdict, POLICY), Gates())
    [found] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert CLOSING in [case["id"] for case in json.loads(found)["cases"]]
    assert not re.search("[<>&\u2028]", found)
    assert page.count("</script>") == 2


@pytest.mark.parametrize("name", [*EXAMPLES, *FAILURES])
def test_the_page_needs_nothing_but_itself(name: str) -> None:
    """It opens with the words of the comment, and every drawing stays in its frame and says what it shows."""
    made = all_reported()[name]
    page = write(made, Gates())
    policy = "default-src 'none'; "
    for element in ("style", "script"):
        [text] = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
        policy += f"{element}-src 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'; "
    assert f"\"Content-Security-Policy\" content=\"{policy}base-uri 'none'; form-action 'none'\"" in page
    assert not re.search(r"<(link|img|iframe|object|embed|base)\b|\burl\(|@import|\bfetch\(|import\(", page)
    # The documentation is the one place outside that a page may lead to, by a click.
    assert "http" not in page.replace("http-equiv", "").replace(f'<a href="{DOCS}', "")
    said = "".join(
        piece.glyph if isinstance(piece, Mark) else getattr(piece, "text", piece) for piece in made.report.headline
    )
    assert words(re.findall(r"<h1>(.*?)</h1>", page, re.DOTALL)[0]) == " ".join(said.split())
    for svg in drawings(page):
        assert len(svg.get("aria-label") or "") > 20
        in_its_frame(svg)


def in_its_frame(svg: ElementTree.Element) -> None:
    width, height = map(float, (svg.get("viewBox") or "").split()[2:])
    for element in svg.iter():
        for key, most in (("x", width), ("cx", width), ("x1", width), ("x2", width), ("y", height), ("cy", height)):
            if key in element.attrib:
                assert -0.1 <= float(element.attrib[key]) <= most + 0.1, ElementTree.tostring(element)


def words(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", markup)).split())


def test_the_ways_to_repository_pull_request_and_run() -> None:
    example = EXAMPLES["slower"]()
    run = example.record.run.model_copy(update={"repository": "octo-org/kernels", "pull_request": 12})
    made = of_verdict(example.record.model_copy(update={"run": run}), example.verdict, POLICY)
    address = "https://github.com/octo-org/kernels"
    places = Links(address, f"{address}/pull/12", None, f"{address}/actions/runs/7")
    page = Elements(write(made, Gates(), places))
    ways = {value.removeprefix("href=") for value in page.values if "https" in value and DOCS not in value}
    assert ways == {address, f"{address}/pull/12", f"{address}/actions/runs/7#artifacts"}


def drawings(page: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg viewBox.*?</svg>", page, flags=re.DOTALL)]  # noqa: S314 (ours)


def test_a_case_far_from_the_rest_leaves_them_room() -> None:
    lanes = re.findall(
        r'<span class="lane">(.*?)</span>', write(situation("one case far from the rest"), Gates()), re.S
    )
    assert 'href="#beyond-high"' in lanes[0]
    assert [lane.count("#beyond") for lane in lanes[1:]] == [0] * 8
    assert all(10 < float(x) < 90 for lane in lanes[1:] for x in re.findall(r'href="#mark-same" x="([\d.]+)%', lane))
