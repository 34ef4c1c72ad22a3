"""Text of a stranger in every string and key of a record: it is text in the comment and on the page, and no more."""

from __future__ import annotations

import pytest

from tests.ci.document import test_render
from tests.ci.report import test_page

SHA = "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432"
PAYLOADS = {
    "mention": "@octocat @org/team &#64;octocat",
    "issue": "#1 GH-1 owner/repo#1 JIRA-123",
    "commit": f"{SHA} owner@{SHA}",
    "address": "https://example.org www.example.org ftp://a mailto:me me@example.org a.b.com xmpp:a@b",
    "link": "[a](http://b) [a]: b [![a](b)](c)",
    "image": "![a](https://evil.test/p.png) <img src=x onerror=alert(1)>",
    "HTML": "<b>bold</b> <script>alert(1)</script> <svg onload=alert(1)> javascript:alert(1)",
    "details": "</details></summary><details open>",
    "marker": f"<!-- kernelgate --> --> <!-- kernelgate-state topic=verdict head={SHA} run=9 attempt=1 -->",
    "table": "a | b \\| c \\\\| d",
    "newline": "\n\n# heading\r\n- item\n\n    code",
    "line separator": "a\u2028# b\u2029# c\x85# d\x0b# e",
    "fence": "```\n~~~\n```` `a` `` b",
    "mathematics": "$a$ $$b$$ $`c`$ \\(d\\) \\begin{e}",
    "mermaid": "```mermaid\ngraph TD; A-->B\n```",
    "footnote": "[^1] [^1]: note",
    "alert": "> [!WARNING]\n> x",
    "task": "- [x] done - [ ] open",
    "emoji": ":tada: :+1:",
    "bidirectional": "a\u202eb\u2066c שלום",
    "zero width": "a\u200bb\ufeffc\u2060d",
    "tag characters": "a\U000e0041\U000e0042",
    "homoglyph": "Ѕuccess: аll gооd",
    "zalgo": "a\u0301\u0302\u0303\u0304\u0329\u0330",
    "setext": "title\n===\nother\n---",
    "entity": "&lt;b&gt; &#60;i&#62; &commat;octocat",
    "terminal": "\x1b[31mred\x1b]8;;http://a\x07",
    "NUL": "a\x00b",
    "style": "</style><style>*{display:none}</style> url(http://a)",
    "template": "{{ 7 * 7 }} {% raw %} ${{ github.token }}",
    "advisory": "GHSA-abcd-efgh-ijkm CVE-2026-1234",
}
INERT = test_render.test_no_text_of_a_record_does_anything_in_a_comment
PAGE = test_page.test_no_text_of_a_record_becomes_an_element_of_the_page


MARKUP = ("link", "image", "HTML", "details", "entity", "terminal", "NUL", "style", "template")
"""What a page might take for more than text."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", PAYLOADS)
def test_it_is_inert_everywhere(kind: str) -> None:
    """What tests/ci/document holds for random texts, for each kind that was tried."""
    for held in (INERT, *((PAGE,) if kind in MARKUP else ())):
        held.hypothesis.inner_test(PAYLOADS[kind])
