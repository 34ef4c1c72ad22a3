"""The quick reference is what the command line, the cookbook and the policy say, and one page when it is printed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kernelgate.ci.commands import exit_codes
from kernelgate.ci.policy import policy
from kernelgate.ci.policy.policy import Policy
from tests import docs_code
from tests.ci.report import browser
from tests.pages import quick_reference

KEYS = {key for rows in quick_reference.THRESHOLDS.values() for key in rows}


def test_the_page_is_current() -> None:
    rules = policy.load(quick_reference.ROOT / policy.POLICY_FILE)
    made = "python -m tests.pages.quick_reference"
    assert quick_reference.PAGE.read_text(encoding="utf-8") == quick_reference.text(rules), made


def test_every_command_and_every_part_of_one_is_there() -> None:
    text = quick_reference.text(Policy())
    assert set(re.findall(r"^\| `kernelgate (\w+)`", text, re.MULTILINE)) == set(docs_code.top_level())
    rows = {
        verb: next(line for line in text.splitlines() if f"`kernelgate {verb}`" in line)
        for verb in docs_code.top_level()
    }
    for verb, row in rows.items():
        assert [part for part in quick_reference.parts(verb) if f"`{part}`" not in row] == [], verb
    for code in (exit_codes.UNEXPECTED, exit_codes.INPUT_OUTPUT, exit_codes.CLOSED_PIPE):
        assert re.search(rf"^\| {code} \|", text, re.MULTILINE)
    assert f" {exit_codes.STOP} time or money is spent" in rows["session"]


def test_its_session_is_what_the_command_line_takes() -> None:
    """Line by line, from `new` to `close`; and its edit finds what it changes."""
    lines = [shlex.split(line, comments=True) for line in quick_reference.SESSION.splitlines()]
    parts = [words[2] for words in lines if words[:2] == ["kernelgate", "session"]]
    assert parts == ["new", "gate", "try", "keep", "close"]
    for line in quick_reference.SESSION.splitlines():
        if line.startswith("kernelgate"):
            docs_code.parsed(line)
    edit, source = next(words[2:] for words in lines if words[:1] == ["sed"])
    assert edit.split("/")[1] in (quick_reference.ROOT / source).read_text(encoding="utf-8")


@pytest.mark.slow
def test_it_is_printed_on_one_page(tmp_path: Path) -> None:
    chromium = browser.executable()
    assert chromium, browser.MISSING
    site = tmp_path / "site"
    words = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(site)]
    subprocess.run(words, cwd=quick_reference.ROOT, check=True, capture_output=True)
    page, printed = site / "quick-reference" / "index.html", tmp_path / "printed.pdf"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    asked = [chromium, *flags, f"--user-data-dir={tmp_path / 'profile'}", f"--print-to-pdf={printed}"]
    subprocess.run([*asked, page.as_uri()], check=True, capture_output=True, timeout=120)
    assert len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) == 1
