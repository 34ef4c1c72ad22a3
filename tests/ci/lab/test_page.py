from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelgate.ci.commands import cli
from kernelgate.ci.lab import page as write
from kernelgate.ci.lab.log import Closed, Event, SessionCost
from kernelgate.ci.lab.page import Calculator
from kernelgate.ci.lab.state import SessionState, state_of
from kernelgate.ci.policy.policy import Policy
from tests.ci.lab import session_events as made

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\u200b"
NOTHING = Calculator()


def state(*events: Event, minute: float = 20) -> SessionState:
    return state_of(events, Policy(), made.clock(minute))


def metric(html: str, name: str) -> str:
    """A row of the metrics as text: the mark's word, now, target."""
    [row] = [row for row in re.findall(r"<tr.*?</tr>", html) if name in row]
    return re.sub(r"(<[^>]*>)+", "|", row).strip("|")


def test_gates_are_ticked_as_their_evidence_arrives() -> None:
    before = write.shown(state(made.opened()))
    failed = write.shown(state(made.opened(), made.gate("environment", 1), made.gate("build", 2, passed=False)))

    assert '<li class="good">' not in before
    assert failed.count('<li class="good">') == 1
    assert "build was tried" in failed
    assert "read the first error" in failed
    assert "<code>kernelgate bisect --build</code>" in failed


def test_metrics_stand_against_their_targets() -> None:
    begun = (made.opened(target=1.5), *made.passed(0.8))
    html = write.shown(state(*begun, made.tried(1, -50), made.decided(1, True), minute=40))

    assert metric(html, "working build") == "✓|reached|time to a working build|2 min|≤ 30 min"
    assert metric(html, "bottleneck") == "!|missed|time to a named bottleneck|not yet|≤ 15 min"
    assert metric(html, "against the reference") == "✓|reached|speed against the reference|1.6×|≥ 1.5×"
    assert metric(html, "tries kept") == "tries kept|1 of 1|–"

    closed = write.shown(state(made.opened(), Closed(at=made.clock(90), why="done", said="")))
    assert metric(closed, "working build") == "–|not known|time to a working build|–|≤ 30 min"
    paid = SessionCost(at=made.clock(5), of="assistant", usd=0.85, said="")
    assert metric(closed, "cost spent") == "cost spent|–|–", "what nobody logged is not 0"
    assert metric(write.shown(state(made.opened(), paid)), "cost spent") == "cost spent|0.85 USD|–"


def test_tries_are_in_the_order_of_their_numbers_and_drawn_with_room() -> None:
    tries = [made.tried(number, -1.0 * number) for number in (25, *range(1, 25))]
    html = write.shown(state(made.opened(), *tries))

    assert re.findall(r"Try (\d+):", html) == [str(number) for number in range(1, 26)]
    assert html.count("<circle") == 25
    assert len(re.findall(r">try \d+<", html)) <= 8
    assert max(float(x) for x in re.findall(r'<circle cx="([\d.]+)"', html)) < 360


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
