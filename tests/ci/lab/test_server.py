"""The server of tools, by the SDK's own client: in one process with verbs made up, and as a real one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from kernelgate.ci.commands import cli
from kernelgate.ci.lab import agents as tools
from kernelgate.ci.lab.agents import AgentsServer, DeviceBudget
from tests.processes import alive, named

ROOT = Path(__file__).parents[3]
MARK = f"300.{os.getpid()}"
"""In the command lines of both processes of DRAWN_OUT, and of no other."""
DRAWN_OUT = (
    f"import time,subprocess; p = subprocess.Popen(['sleep', '{MARK}']); print(p.pid, flush=True); time.sleep({MARK})"
)


def server(checkout: Path, program: str | None = None, **rules: Any) -> AgentsServer:
    made = AgentsServer(checkout, tools.offered(cli.cli), DeviceBudget(**{"gpu_seconds": 7200.0, **rules}))
    if program is not None:
        made.program = (sys.executable, "-c", program)
    return made


def talk(made: AgentsServer, say: Callable[[Client], Awaitable[None]]) -> None:
    async def run() -> None:
        async with Client(made.protocol) as client:
            await say(client)

    anyio.run(run)


async def called(client: Client, name: str, /, **given: Any) -> tuple[bool, dict[str, Any]]:
    result = await client.call_tool(name, given)
    assert isinstance(result.structured_content, dict)
    return bool(result.is_error), result.structured_content


def call(made: AgentsServer, name: str, /, **given: Any) -> tuple[bool, dict[str, Any]]:
    """One call of a client."""
    told: list[tuple[bool, dict[str, Any]]] = []

    async def say(client: Client) -> None:
        told.append(await called(client, name, **given))

    talk(made, say)
    return told[0]


def test_an_answer_holds_the_verbs_json_and_its_exit_code(tmp_path: Path) -> None:
    program = (
        "import json,sys,time; time.sleep(0.3); print(json.dumps(sys.argv[1:])); print('to people', file=sys.stderr)"
        "; sys.exit(1)"
    )
    failed, said = call(server(tmp_path, program), "fuzz", case_ids=["a"])
    assert (failed, said["exit_code"], said["answer"]) == (False, 1, ["fuzz", "--case=a", "--json"])
    assert said["said"] == ["to people"]
    assert said["gpu_seconds_left"] < 3600


def test_no_secret_reaches_a_verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "KERNELGATE_REPORT_TOKEN", "KERNELGATE_BENCH_CASE"):
        monkeypatch.setenv(name, "secret")
    _, said = call(server(tmp_path, "import json,os; print(json.dumps(dict(os.environ)))"), "build")
    assert "PATH" in said["answer"]
    assert "secret" not in said["answer"].values()


def test_a_verb_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    failed, said = call(server(tmp_path, DRAWN_OUT, wall_s=0.3), "build")
    assert (failed, said["exit_code"], "limit" in said["ended"]) == (True, None, True)
    assert named(MARK) == []


def test_two_calls_at_once_do_not_spend_one_budget_twice(tmp_path: Path) -> None:
    async def say(client: Client) -> None:
        said: list[dict[str, Any]] = []

        async def measure() -> None:
            said.append((await called(client, "bench"))[1])

        async with anyio.create_task_group() as group:
            group.start_soon(measure)
            group.start_soon(measure)
        assert sorted("refused" in one for one in said) == [False, True]

    talk(server(tmp_path, DRAWN_OUT, gpu_seconds=0.2), say)


def test_what_is_refused_is_said_and_starts_nothing(tmp_path: Path) -> None:
    made = server(tmp_path, "open('started', 'w')")
    for name, given in (("compare", {"records": ["/etc/passwd"]}), ("rm", {})):
        failed, said = call(made, name, **given)
        assert failed
        assert said["refused"]
    assert not (tmp_path / "started").exists()


def test_an_answer_is_bounded(tmp_path: Path) -> None:
    _, said = call(server(tmp_path, "print('x' * 3_000_000)", output_bytes=1000), "build")
    assert (said["answer"], len(said["output"]), said["output_cut"]) == (None, 1000, "at 1000 bytes")


def test_a_cancelled_request_leaves_no_process(tmp_path: Path) -> None:
    program = DRAWN_OUT.replace("print(p.pid, flush=True)", "open('pid', 'w').write(str(p.pid))")

    async def say(client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "build", {})
            with anyio.fail_after(20):
                while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
                    await anyio.sleep(0.02)
            group.cancel_scope.cancel()
        pid = int((tmp_path / "pid").read_text())
        with anyio.fail_after(20):
            while alive(pid):
                await anyio.sleep(0.02)

    talk(server(tmp_path, program), say)


def test_two_verbs_run_at_once_and_others_wait(tmp_path: Path) -> None:
    program = (
        "import os,pathlib,time; here = pathlib.Path(str(os.getpid())); here.touch();"
        "print(len([*pathlib.Path('.').iterdir()])); time.sleep(0.3); here.unlink()"
    )
    seen: list[int] = []

    async def say(client: Client) -> None:
        async def one() -> None:
            seen.append((await called(client, "build"))[1]["answer"])

        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(one)

    talk(server(tmp_path, program), say)
    assert (len(seen), max(seen)) == (8, 2)


SERVED = """
import os, sys, anyio, pathlib
from kernelgate.ci.commands import cli
from kernelgate.ci.lab import agents
made = agents.AgentsServer(pathlib.Path(sys.argv[1]), agents.offered(cli.cli), agents.DeviceBudget(7200.0))
made.program = (sys.executable, "-c", os.environ["PROGRAM"])
anyio.run(made.serve)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_server_with_a_client_stops_on_signals_with_all_that_runs(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVED, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PROGRAM": DRAWN_OUT},
    ) as process:
        assert process.stdin is not None
        begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        for message in (
            {"id": 1, "method": "initialize", "params": begin},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": "build", "arguments": {}}},
        ):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()
        for _ in range(1000):
            if named(MARK):
                break
            time.sleep(0.02)
        assert named(MARK), "the verb did not start"
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    assert not named(MARK)


@pytest.mark.slow
def test_a_real_server_answers_over_its_pipes() -> None:
    async def run() -> None:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "kernelgate.ci.commands.cli", "mcp"],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"]},
        )
        async with Client(parameters) as client:
            failed, said = await called(client, "decide", speedup=0.4, milliseconds=1.0)
            assert not failed
            assert (said["exit_code"], said["answer"]["stops"]) == (1, True)
            failed, said = await called(client, "compare", records=["tests/data/cards/swiglu_slower.json"])
            assert (failed, said["answer"]["verdict"]) == (False, "regressed")
            _, said = await called(client, "patterns", session="recorded-n-plus-4")
            assert "correctness-early" in json.dumps(said["answer"])
            failed, said = await called(client, "compare", records=["../x.json"])
            assert failed

    anyio.run(run)
