from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelgate.ci.commands import cli
from kernelgate.ci.lab import page as write
from kernelgate.ci.lab.log import Event
from kernelgate.ci.lab.page import Calculator
from kernelgate.ci.lab.state import SessionState, state_of
from kernelgate.ci.policy.policy import Policy
from tests.ci.lab import session_events as made

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\u200b"
NOTHING = Calculator()


def state(*events: Event, minute: float = 20) -> SessionState:
    return state_of(events, Policy(), made.clock(minute))


def test_what_a_log_holds_is_shown_and_does_nothing() -> None:
    events = (made.opened(objective=HOSTILE, name="one"), made.gate("build", 1, passed=False, said=HOSTILE))
    events += (made.tried(1, -3, what=HOSTILE, why=HOSTILE),)
    html = write.page(state(*events), Calculator({HOSTILE: (HOSTILE,)}, HOSTILE))

    assert "<img" not in html
    assert "\u202e" not in html
    assert html.count("</script>") == 2, "of our own two"
    assert "onerror" in html


def test_a_page_in_a_file_asks_nobody_and_a_live_one_its_server_alone() -> None:
    file, live = (write.page(state(made.opened()), NOTHING, live) for live in (False, True))

    assert "connect-src" not in file
    assert 'id="live"' not in file
    assert "default-src 'none'" in live
    assert "connect-src 'self'" in live
    assert not re.search(r"(src|href)=\"", file)


def test_the_page_is_written_and_one_form_must_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(made.checkout(tmp_path))
    assert cli.run(["session", "page", "-o", "out/page.html"]) == 0
    assert "<title>one: faster</title>" in (tmp_path / "out/page.html").read_text(encoding="utf-8")
    for words in ([], ["-o", "page.html", "--serve"]):
        assert cli.run(["session", "page", *words]) == 64
        assert "give one of -o FILE" in capsys.readouterr().err
