"""`kernelgate mcp` as agents use it: by a scripted client of the official SDK for TypeScript, over pipes. Python's is
that of test_server.py."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests import miniature
from tests.ci.lab.test_server import DRAWN_OUT, MARK, SERVED
from tests.processes import named, wait_for
from tests.workflows import node

Told = dict[str, Any]
pytestmark = [pytest.mark.slow, pytest.mark.guards("ci/lab/", "tests/ci/lab/")]
WORKFLOWS = Path(__file__).parents[2] / "workflows"
STARTED = DRAWN_OUT.replace("print(p.pid, flush=True)", "open('ready', 'w').close()")
READS = 'import json,sys; open("started", "a").write("x"); print(json.dumps({"words": sys.argv[1:]}))'


def client(asked: Told) -> Told:
    command = node.command()
    assert command, "Node is missing; `make test` brings it"
    words = [*command, "client.mjs", json.dumps(asked)]
    done = subprocess.run(words, cwd=WORKFLOWS, capture_output=True, text=True, check=True, timeout=900)
    found: Told = json.loads(done.stdout or "{}")
    return found


def served(checkout: Path, program: str) -> Told:
    """The server with a program in the place of its verbs."""
    env = {"PATH": os.environ["PATH"], "PROGRAM": program}
    return {"command": sys.executable, "args": ["-c", SERVED, str(checkout)], "cwd": str(checkout), "env": env}


def wrong_calls(count: int) -> list[Told]:
    drawn = random.Random(11)
    kinds: list[Callable[[], Told]] = [
        lambda: {"name": "bench", "arguments": {drawn.choice(["case_ids", "cases", "policy", "x" * 99]): ["a"]}},
        lambda: {"name": "compare", "arguments": {"records": drawn.choice([["../../x"], "run.json", [3.5, None], 7])}},
        lambda: {"name": "session_try", "arguments": {"what": drawn.choice(["", "-x", "a\x00"]) + "\x07"}},
        lambda: {"name": drawn.choice(["session_tri", "rm", "", "kernelgate bench"]), "arguments": {}},
        lambda: {"name": "decide", "arguments": {"speedup": drawn.choice([True, [1], {"a": 1}])}},
        lambda: {"name": "more", "arguments": {"answer": drawn.choice(["1", -1, None]), "page": 1}},
        lambda: {"name": "profile", "arguments": {"out": drawn.choice(["csrc", "/etc", ".git"])}},
    ]
    return [drawn.choice(kinds)() for _ in range(count)]


def test_a_client_that_is_wrong_200_times_is_told_each_time_what_to_do(tmp_path: Path) -> None:
    right = {"name": "build", "arguments": {"ref": "HEAD"}}
    found = client({"server": served(tmp_path, READS), "calls": [*wrong_calls(200), right]})
    assert found["version"] == version("kernelgate")
    *wrong, last = found["told"]
    assert len(wrong) == 200
    for one in wrong:
        assert one["failed"], one
        assert one["said"]["error"]["next"]["tool"] in found["tools"], one
    assert last["said"]["answer"] == {"words": ["build", "--ref=HEAD", "--json"]}
    assert (tmp_path / "started").read_text() == "x", "what is refused starts nothing"


def test_a_client_that_cancels_leaves_no_process_and_goes_on(tmp_path: Path) -> None:
    calls = [{"name": "doctor", "arguments": {"gpu": True}}, {"name": "build", "arguments": {}}]
    asked = {"server": served(tmp_path, f"import sys\nif 'build' in sys.argv: {STARTED}"), "calls": calls}
    found = client({**asked, "ready": str(tmp_path / "ready")})
    assert [one["name"] for one in found["told"]] == ["doctor", "build"]
    assert found["told"][1]["cancelled"]
    assert found["heard"]
    assert named(MARK) == []


def test_a_client_that_hangs_up_takes_the_server_and_its_verb_with_it(tmp_path: Path) -> None:
    asked = {"server": served(tmp_path, STARTED), "calls": [{"name": "build", "arguments": {}}]}
    assert client({**asked, "ready": str(tmp_path / "ready"), "hangUp": True}) == {}
    wait_for(lambda: not (named(MARK) or named(str(tmp_path))), what="something outlives its client")


def test_a_whole_session_by_the_next_calls_alone(tmp_path: Path) -> None:
    """What the environment is like is not asked for, and nobody edits the kernel: the try has nothing to measure."""
    card = miniature.SCALE_CARD.replace("    cases =", "    cpu_cases = [dict(N=4096, dtype='fp32')]\n    cases =")
    strided = miniature.SCALE.replace("mutable_data_ptr())[i]", "mutable_data_ptr())[i * out.stride(0)]")
    strided = strided.replace("const_data_ptr())[i]", "const_data_ptr())[i * x.stride(0)]")
    root = miniature.repository(tmp_path / "checkout", {"csrc/scale.cpp": strided, ".ci/kernels/scale.py": card})
    words = ["-m", "kernelgate.ci.commands.cli", "mcp"]
    env = {name: os.environ[name] for name in ("PATH", "HOME", "KERNELGATE_CACHE", "CC", "CXX") if name in os.environ}
    env |= {"PYTHONPATH": str(Path(__file__).parents[3])}
    found = client(
        {
            "server": {"command": sys.executable, "args": words, "cwd": str(root), "env": env},
            "calls": [
                {"name": "session_new", "arguments": {"objective": "faster", "name": "one"}},
                {"name": "session_gate", "arguments": {"gate": "environment", "skip": "by hand"}},
            ],
            "follow": 9,
            "before": {"session_try": {"name": "session_close", "arguments": {"learnt": "enough"}}},
        }
    )
    made = [(one["name"], one["said"]) for one in found["told"]]
    gates = [said["next"]["arguments"].get("gate") for _, said in made if "next" in said]
    assert gates[:4] == ["environment", "build", "correctness", "performance"], made
    assert made[-1][0] == "session_close", made
    assert not any(one["failed"] for one in found["told"]), made
    assert "enough" in (root / ".ci/sessions/one/report.md").read_text(encoding="utf-8")
