"""The page of a session, written and served; and its calculator, which says what the verb does."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench.build.machine_code import Occupancy, occupancy
from kernelgate.bench.core import hardware
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.explain import tile
from kernelgate.bench.explain.tile import BlockNeeds
from kernelgate.ci.lab import folder, page
from kernelgate.ci.lab import page as write
from kernelgate.ci.lab.log import Event
from kernelgate.ci.lab.page import Calculator
from kernelgate.ci.lab.state import SessionState, state_of
from kernelgate.ci.policy.policy import Policy
from tests.called import EndsWith
from tests.ci.lab import session_events as made
from tests.workflows import node

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\u200b"


def state(*events: Event) -> SessionState:
    return state_of(events, Policy(), made.clock(20))


def test_what_a_log_holds_is_shown_and_does_nothing() -> None:
    events = (made.opened(objective=HOSTILE, name="one"), made.gate("build", 1, passed=False, said=HOSTILE))
    events += (made.tried(1, -3, what=HOSTILE, why=HOSTILE),)
    html = write.page(state(*events), Calculator({HOSTILE: (HOSTILE,)}, HOSTILE))
    assert "<img" not in html
    assert "\u202e" not in html
    assert html.count("</script>") == 2, "of our own two"
    assert "onerror" in html


def test_a_page_in_a_file_asks_nobody_and_a_live_one_its_server_alone() -> None:
    file, live = (write.page(state(made.opened()), Calculator(), live) for live in (False, True))
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


# ---- served ----------------------------------------------------------------------------------------------------------

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
    served = write.served(begun, Policy(), Calculator())
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
    with socket.socket() as free:
        free.bind(("127.0.0.1", port))


# ---- the calculator and `kernelgate resources --tile` say the same, over a grid of what may be asked -----------------


SCRIPT = Path(page.__file__).parent / "templates/calculator.js"
RUN = """
const { facts, asked } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const said = (changed) => {
  const { fit, bytes, about } = calculator({ ...facts.rules, ...changed });
  const found = asked.blocks.map((needs) => facts.gpus.map((gpu) => fit(needs, gpu)));
  return { found, bytes: asked.words.map(bytes), about: asked.least.map(about) };
};
const right = said({});
const same = asked.changed.filter((one) => JSON.stringify(said(one).found) === JSON.stringify(right.found));
console.log(JSON.stringify({ ...right, same }));
"""
THREADS = (1, 33, 96, 128, 512, 1000)
SHARED = (0, 1, 1023, 8192, 33_000, 45_670, 48 << 10, 99 << 10, (99 << 10) + 1, 163 << 10, 227 << 10, 228 << 10)
REGISTERS = (0, 1, 16, 32, 33, 64, 80, 128, 168, 254, 255)
LEAST = (0, 15, 160, 204, 205, 206, 255, 256, 400)
WORDS = ("48KiB", "49152", "100B", "0", "48MiB", "", "12x", "1234567890")


BLOCKS = list(product(SHARED, THREADS, REGISTERS))
TILES = list(product(SHARED, (128, 1024), LEAST))
CHANGED = {
    "registers_per_warp_unit": 512,
    "schedulers": 1,
    "system_shared": 0,
    "shared_unit": 1,
    "registers_beside": 49,
}
"""Rules, each changed by little."""


def by_script() -> dict[str, Any]:
    """What the page's script says of the grid; `same`: the changed rules by which it would say nothing else."""
    started = node.command()
    assert started, "Node is missing; `make test` brings it"
    blocks = [{"shared_bytes": s, "threads": t, "registers": r} for s, t, r in BLOCKS]
    blocks += [{"shared_bytes": s, "threads": t, "least_registers": least} for s, t, least in TILES]
    changed = [{name: value} for name, value in CHANGED.items()]
    asked = {"changed": changed, "blocks": blocks, "words": WORDS, "least": LEAST}
    given = json.dumps({"facts": page.calculator_data(Calculator()), "asked": asked}, default=dict)
    words = [*started, "-e", SCRIPT.read_text(encoding="utf-8") + RUN]
    done = subprocess.run(words, input=given, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def plain(fits: Occupancy | str) -> dict[str, Any]:
    return {"problem": fits} if isinstance(fits, str) else asdict(fits) | {"limits": list(fits.limits)}


def test_the_page_calculates_what_the_verb_does() -> None:
    """And would not by other rules: the grid reaches the edges at which each of them decides."""
    said, gpus = by_script(), [model for _, model in sorted(hardware.GPUS.items())]
    for (shared, threads, registers), found in zip(BLOCKS, said["found"], strict=False):
        for gpu, one in zip(gpus, found, strict=True):
            fits = occupancy(gpu.limits, threads, registers, shared)
            assert one == plain(fits) if fits.blocks else "does not fit" in one["problem"]
    for (shared, threads, least), found in zip(TILES, said["found"][len(BLOCKS) :], strict=True):
        assert found == [plain(tile.fit(BlockNeeds("", shared, threads, least), gpu)) for gpu in gpus]
    sizes = [tile.plain(words, 4) for words in WORDS]
    assert said["bytes"] == [None if one is None else one.shared_bytes for one in sizes]
    assert said["about"] == [tile.about(least) for least in LEAST]
    assert said["same"] == []
