"""The page of a session in a real browser: live, on a desk and on a phone."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from kernelgate.ci.lab import folder
from tests.ci.lab import session_events as made
from tests.ci.report import browser

pytestmark = [pytest.mark.slow, pytest.mark.guards("ci/lab/", "ci/report/", "ci/document/", "tests/ci/lab/")]
ROOT = Path(__file__).parents[3]
WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made.checkout(tmp_path))
    return tmp_path


@pytest.fixture
def tab() -> Iterator[Page]:
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=browser.executable())
        yield opened.new_page()
        opened.close()


def test_a_live_page_shows_what_is_logged_and_ends_by_an_interrupt(checkout: Path, tab: Page) -> None:
    words = [sys.executable, "-m", "kernelgate.ci.commands.cli", "session", "page", "--serve", "--port", "0"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "PYTHONUNBUFFERED": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=environment) as running, ExitStack() as ends:
        ends.callback(running.kill)
        address = re.match(r"http://127\.0\.0\.1:\d+/", running.stdout.readline())
        assert address is not None
        said: list[str] = []
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.goto(address[0])
        expect(tab.locator(".gates .good")).to_have_count(0)
        log = checkout / ".ci/sessions/one"
        folder.append(log, *made.passed(0.8), made.tried(1, -50, what="<b>wider</b>"))
        expect(tab.locator(".gates .good")).to_have_count(4)
        expect(tab.locator(".tries strong")).to_have_text("<b>wider</b>")
        expect(tab.locator("svg circle")).to_have_count(1)
        for width, height in (browser.PHONE, (1280, 800)):
            tab.set_viewport_size({"width": width, "height": height})
            assert tab.evaluate(WIDE) == 0
            assert browser.serious(tab) == []
        assert said == []
        whole = (log / "log.jsonl").read_text()
        (log / "log.jsonl").write_text(whole + "nonsense\n")
        expect(tab.locator("#live")).to_contain_text("older than the log")
        (log / "log.jsonl").write_text(whole)
        expect(tab.locator("#live")).to_contain_text("Live")
        running.send_signal(signal.SIGINT)
        assert running.wait(20) == 0
        assert running.stderr.read() == ""
        expect(tab.locator("#live")).to_contain_text("No answer since")
