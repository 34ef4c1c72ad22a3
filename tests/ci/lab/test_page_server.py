from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from kernelgate.bench.core.errors import UsageError
from kernelgate.ci.lab import folder
from kernelgate.ci.lab import page as server
from kernelgate.ci.lab.page import Calculator, PageAnswer
from kernelgate.ci.policy.policy import Policy
from tests.ci.lab import session_events as made

FIXED = {"/": (server.HTML, lambda: "page"), "/state.json": (server.JSON, lambda: "{}")}
LOCAL = ((b"host", b"127.0.0.1:8756"),)


def test_browsers_of_this_machine_are_answered_and_there_is_nothing_else() -> None:
    for host in (b"127.0.0.1:8756", b"localhost"):
        headers = [(b"accept", b"*/*"), (b"Host", host)]
        assert server.answer("GET", "/", headers, FIXED) == PageAnswer(200, server.HTML, "page")
        assert server.answer("GET", "/state.json", headers, FIXED) == PageAnswer(200, server.JSON, "{}")
    for method, path, status in (("POST", "/", 405), ("GET", "/log.jsonl", 404), ("GET", "/../state.json", 404)):
        assert server.answer(method, path, LOCAL, FIXED).status == status


def test_a_name_that_was_pointed_at_this_machine_is_refused() -> None:
    strange = (b"evil.example", b"127.0.0.1.evil.example", b"localhost@evil.example", b"localhost\n")
    for hosts in (*([one] for one in strange), [b"localhost", b"evil.example"], []):
        assert server.answer("GET", "/state.json", [(b"host", host) for host in hosts], FIXED).status == 421


def test_a_broken_line_is_said_and_mended_without_a_new_start(tmp_path: Path) -> None:
    begun = folder.create(tmp_path, made.opened()).folder
    served = server.served(begun, Policy(), Calculator())
    log = begun / "log.jsonl"
    whole = log.read_text()
    log.write_text(whole + '{"event": "no')
    told, page = (server.answer("GET", path, LOCAL, served) for path in ("/state.json", "/"))

    assert (told.status, page.status) == (500, 500)
    assert "log.jsonl:2 is no event of a session" in json.loads(told.text)["error"]
    assert "log.jsonl:2 is no event of a session" in page.text
    log.write_text(whole)
    assert server.answer("GET", "/", LOCAL, served).status == 200


def test_it_listens_on_the_loopback_address_alone_and_says_that_a_port_is_taken() -> None:
    with server.listening(0) as bound:
        address, port = bound.getsockname()
        assert address == "127.0.0.1"
        with pytest.raises(
            UsageError, match=rf"--port {port} of 127\.0\.0\.1 cannot be had \(address already in use\)"
        ):
            server.listening(port)
    with socket.socket() as free:
        free.bind(("127.0.0.1", port))
