"""The page of a session, written and served."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kernelgate.bench.core.errors import UsageError
from kernelgate.ci.lab import folder
from kernelgate.ci.lab import page as write
from kernelgate.ci.lab.log import Event
from kernelgate.ci.lab.state import SessionState, state_of
from kernelgate.ci.policy.policy import Policy
from tests.called import EndsWith
from tests.ci.lab import session_events as made

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\u200b"


def state(*events: Event) -> SessionState:
    return state_of(events, Policy(), made.clock(20))


def test_what_a_log_holds_is_shown_and_does_nothing() -> None:
    events = (made.opened(objective=HOSTILE, name="one"), made.gate("build", 1, passed=False, said=HOSTILE))
    events += (made.tried(1, -3, what=HOSTILE, why=HOSTILE),)
    html = write.page(state(*events))
    assert "<img" not in html
    assert "\u202e" not in html
    assert html.count("</script>") == 1, "our own"
    assert "onerror" in html


def test_a_page_in_a_file_asks_nobody_and_a_live_one_its_server_alone() -> None:
    file, live = (write.page(state(made.opened()), live) for live in (False, True))
    assert not re.search(r"(src|href)=\"|connect-src|id=\"live\"", file)
    assert "default-src 'none'" in live
    assert "connect-src 'self'" in live


def test_the_page_is_written_and_one_form_must_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    monkeypatch.chdir(made.checkout(tmp_path))
    ends_with(0, "session", "page", "-o", "out/page.html")
    assert "<title>one: faster</title>" in (tmp_path / "out/page.html").read_text(encoding="utf-8")
    for words in ([], ["-o", "page.html", "--serve"]):
        assert "give one of -o FILE" in ends_with(64, "session", "page", *words).err


FIXED = {"/": (write.HTML, lambda: "page"), "/state.json": (write.JSON, lambda: "{}")}
LOCAL = ((b"host", b"127.0.0.1:8756"),)


def test_browsers_of_this_machine_are_answered_and_there_is_nothing_else() -> None:
    for host in (b"127.0.0.1:8756", b"localhost"):
        headers = [(b"accept", b"*/*"), (b"Host", host)]
        assert write.answer("GET", "/", headers, FIXED) == (200, write.HTML, "page")
        assert write.answer("GET", "/state.json", headers, FIXED) == (200, write.JSON, "{}")
    for method, path, status in (("POST", "/", 405), ("GET", "/log.jsonl", 404), ("GET", "/../state.json", 404)):
        assert write.answer(method, path, LOCAL, FIXED)[0] == status


def test_a_name_that_was_pointed_at_this_machine_is_refused() -> None:
    strange = (b"evil.example", b"127.0.0.1.evil.example", b"localhost@evil.example", b"localhost\n")
    for hosts in (*([one] for one in strange), [b"localhost", b"evil.example"], []):
        assert write.answer("GET", "/state.json", [(b"host", host) for host in hosts], FIXED)[0] == 421


def test_a_broken_line_is_said_and_mended_without_a_new_start(tmp_path: Path) -> None:
    begun = folder.create(tmp_path, made.opened()).folder
    served = write.served(begun, Policy())
    log = begun / "log.jsonl"
    whole = log.read_text()
    log.write_text(whole + '{"event": "no')
    told, page_ = (write.answer("GET", path, LOCAL, served) for path in ("/state.json", "/"))
    assert (told[0], page_[0]) == (500, 500)
    assert "log.jsonl:2 is no event of a session" in json.loads(told[2])["error"]
    assert "log.jsonl:2 is no event of a session" in page_[2]
    log.write_text(whole)
    assert write.answer("GET", "/", LOCAL, served)[0] == 200


def test_it_listens_on_the_loopback_address_alone_and_says_that_a_port_is_taken() -> None:
    with write.listening(0) as bound:
        address, port = bound.getsockname()
        assert address == "127.0.0.1"
        with pytest.raises(
            UsageError, match=rf"--port {port} of 127\.0\.0\.1 cannot be had \(address already in use\)"
        ):
            write.listening(port)
