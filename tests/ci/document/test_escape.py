"""Text from strangers: shown as it is, doing nothing."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kernelgate.ci.document import escape

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("within ±1% of [+4.8, +5.0] on 2026-11-21", "within ±1% of [+4.8, +5.0] on 2026-11-21"),
        ("ask @octocat about it", "ask `@octocat` about it"),
        ("slower (see a.b), by f(x_y) or (g.h too)", "slower (see `a.b`), by `f(x_y)` or (`g.h` too)"),
        ("a `b` c", "a `` `b` `` c"),
        ("two\nlines\tand  gaps", "two lines and gaps"),
        ("turned\u202ehere", "`turned\\u{202e}here`"),
        ("<!-- kernelgate -->", "`<! --` kernelgate `-->`"),
    ],
)
def test_all_but_plain_words_becomes_code(hostile: str, shown: str) -> None:
    assert escape.prose(hostile) == shown


@given(st.text())
def test_a_code_span_holds_all_of_its_text(text: str) -> None:
    inline = PARSER.parse(f"before {escape.code(text)} after")[1]
    assert [token.type for token in inline.children] == ["text", "code_inline", "text"]
    assert inline.children[1].content == (escape.visible(text) or "(blank)")


@given(st.lists(st.text().map(escape.verbatim), min_size=1))
def test_no_line_closes_its_fence(lines: list[str]) -> None:
    (token,) = PARSER.parse(escape.fence(tuple(lines), "sh"))
    assert (token.type, token.content) == ("fence", "\n".join(lines) + "\n")


SHELL_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.lists(SHELL_TEXT, min_size=1, max_size=20))
def test_the_shell_reads_back_the_words_that_were_quoted(words: list[str]) -> None:
    line = escape.shell("printf", r"%s\0", *words)
    assert "\n" not in line
    assert "<!--" not in line
    bash = shutil.which("bash")
    assert bash is not None
    run = subprocess.run([bash, "-c", line], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
    assert run.stdout.decode().split("\0")[:-1] == words


@pytest.mark.parametrize("address", ["", "javascript:alert(1)", "https://a.test/7) <img>", 'https://a.test/7"'])
def test_a_link_to_what_is_no_address_is_its_text(address: str) -> None:
    assert escape.link("the run", address) == "the run"
