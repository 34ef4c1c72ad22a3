"""`kernelgate mcp`: what an agent asks for becomes the verb's words, and nothing that it may not ask for does; and the
server, by the SDK's own client, in one process with verbs made up."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from mcp import Client, MCPError

from kernelgate.ci.commands import cli
from kernelgate.ci.lab import mcp_tools as tools
from kernelgate.ci.lab.mcp_server import AgentsServer, DeviceBudget
from kernelgate.ci.lab.mcp_tools import ToolRefusedError
from tests.processes import named, wait_for

ROOT = Path(__file__).parents[3]
TOOLS = {tool.name: tool for tool in tools.offered(cli.cli)}


def words(name: str, checkout: Path = Path(), **given: Any) -> list[str]:
    return tools.command_line(TOOLS[name], given, checkout)


def listed() -> list[dict[str, Any]]:
    made = AgentsServer(Path(), tuple(TOOLS.values()), DeviceBudget(1.0))
    return anyio.run(made._list, None, None).model_dump(mode="json", by_alias=True, exclude_none=True)["tools"]


def test_the_tools_are_what_a_person_can_do_and_no_step_of_a_workflow() -> None:
    wanted = "doctor cards build fuzz bench try accuracy sanitize profile resources compare analyze bisect history_show"
    assert {*wanted.split(), "session_try", "session_gate"} <= TOOLS.keys()
    workflows = {"report", "pr", "step", "template", "mcp", "schema", "cache"}
    assert not workflows & {tool.words[0] for tool in TOOLS.values()}
    assert not {"history_next", "history_decide", "session_review"} & TOOLS.keys()
    offered = {str(one.name) for tool in TOOLS.values() for one in tool.parameters.values()}
    assert not offered & {"policy_file", "preset", "token", "post", "library", "base_library", "head_library", "hours"}


def test_the_list_of_tools_is_short() -> None:
    """At most 5,000 tokens: 4.2 characters each, of which o200k_base takes 4.3 for this list."""
    text = json.dumps(listed(), ensure_ascii=False, separators=(",", ":"))
    assert len(text) / 4.2 <= 5000


def test_the_cookbook_lists_every_tool_by_what_it_may_do() -> None:
    agents = (ROOT / "docs/CUDA_COOKBOOK.md").read_text("utf-8").split("\n### Agents\n")[1].split("\n### ")[0]
    told = [frozenset(re.findall(r"`(\w+)`", one)) for one in re.findall(r"^- (.+(?:\n  .+)*)", agents, re.MULTILINE)]
    hints = {one["name"]: one["annotations"] for one in listed()}
    assert all(one["openWorldHint"] is False for one in hints.values())
    read = frozenset(name for name, one in hints.items() if one["readOnlyHint"])
    measure = frozenset(name for name, tool in TOOLS.items() if tool.measures)
    change = frozenset(name for name, one in hints.items() if one.get("destructiveHint"))
    assert told == [read, measure, hints.keys() - read - measure - change, change]


def test_words_become_options_and_places(tmp_path: Path) -> None:
    """And a path that looks like an option stays a path."""
    fuzz = words("fuzz", case=["S=4", "S=65"], seed=3)
    assert fuzz == ["fuzz", "--seed=3", "--case=S=4", "--case=S=65", "--json"]
    assert words("build", **{"time-limit": 3}) == words("build", time_limit=3) == ["build", "--time-limit=3", "--json"]
    assert words("decide", speedup=0.5, milliseconds=1.0) == ["decide", "--json", "--", "0.5", "1.0"]
    assert words("doctor", gpu=True) == ["doctor", "--gpu", "--json"]
    assert words("doctor", gpu=False) == ["doctor", "--json"]
    hidden = words("compare", tmp_path, records=["--policy=/etc/passwd"])
    assert hidden == ["compare", "--json", "--", "--policy=/etc/passwd"]


@pytest.mark.parametrize(
    ("name", "given", "code", "said", "next_"),
    [
        ("compare", {"records": ["link/run.json"]}, "not_allowed", "does not lie in the checkout", ["<records>"]),
        ("bench", {"policy": "x", "seed": 1}, "unknown_argument", "no argument 'policy'", {"seed": 1}),
        ("session_close", {"learned": "much"}, "unknown_argument", "no argument 'learned'", {"learnt": "much"}),
        ("bench", {"output": "csrc/kernel.cu"}, "not_allowed", r"does not lie in out/ of the checkout", {}),
        ("bench", {"base": "--policy=/etc/passwd"}, "invalid_argument", "does not begin with -", {}),
        ("bench", {"case": "S=4"}, "invalid_argument", "takes a list", {}),
        ("bench", {"case": ["a\x00b"]}, "invalid_argument", "all of them printable", {}),
        ("bench", {"alone": "yes"}, "invalid_argument", "is true or false", {}),
        ("compare", {}, "missing_argument", "needs records", ["<records>"]),
    ],
)
def test_what_is_not_allowed_is_refused_with_the_call_to_make_instead(
    name: str, given: dict[str, Any], code: str, said: str, next_: Any, tmp_path: Path
) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "link").symlink_to(tmp_path)
    with pytest.raises(ToolRefusedError, match=said) as refused:
        tools.command_line(TOOLS[name], given, checkout)
    wanted = {"records": next_} if isinstance(next_, list) else next_
    assert refused.value.shown()["code"] == code
    assert refused.value.shown()["next"] == {"tool": name, "arguments": wanted}


@pytest.mark.parametrize("command", ["kernelgate mcp", "rm -rf .", "kernelgate bench --nonsense", 'kernelgate "'])
def test_what_is_no_tool_is_no_call(command: str) -> None:
    assert tools.call_of(command, TOOLS) is None


def test_a_budget_is_of_the_server_and_of_each_session() -> None:
    budget = DeviceBudget(gpu_seconds=100, session_gpu_seconds=60, wall_s=50)
    assert budget.limit_s("a") == 60
    budget.spent["a"] += 45
    assert budget.limit_s("a") == 15
    assert budget.limit_s("b") == 55
    budget.spent["a"] += 20
    assert budget.left_s("b") == 35
    with pytest.raises(ToolRefusedError, match=r"65 of 100 GPU-seconds are spent, 65 of 60 in this session"):
        budget.limit_s("a")


Answer = TypeVar("Answer")
MARK = f"300.{os.getpid()}"
"""In the command lines of both processes of DRAWN_OUT, and of no other."""
DRAWN_OUT = (
    f"import time,subprocess; p = subprocess.Popen(['sleep', '{MARK}']); print(p.pid, flush=True); time.sleep({MARK})"
)
HOLDS = "from kernelgate.bench.system import lock; import time\nwith lock.device('GPU-agents'): time.sleep(%s)"
"""Another device than any that is there."""


def server(checkout: Path, program: str | None = None, **rules: Any) -> AgentsServer:
    made = AgentsServer(checkout, tools.offered(cli.cli), DeviceBudget(**{"gpu_seconds": 7200.0, **rules}))
    if program is not None:
        made.program = (sys.executable, "-c", program)
    return made


Said = tuple[bool, dict[str, Any]]
"""Whether a call failed, and its answer."""


def talk(made: AgentsServer, say: Callable[[Client], Awaitable[Answer]]) -> Answer:
    async def run() -> Answer:
        async with Client(made.protocol) as client:
            return await say(client)

    return anyio.run(run)


async def called(client: Client, name: str, /, **given: Any) -> Said:
    result = await client.call_tool(name, given)
    assert isinstance(result.structured_content, dict)
    return bool(result.is_error), result.structured_content


def call(made: AgentsServer, name: str, /, **given: Any) -> Said:
    return talk(made, lambda client: called(client, name, **given))


def test_an_answer_holds_the_verbs_json_and_its_exit_code(tmp_path: Path) -> None:
    program = (
        "import json,sys,time; time.sleep(0.3); print(json.dumps(sys.argv[1:])); print('to people', file=sys.stderr)"
        "; sys.exit(1)"
    )
    failed, said = call(server(tmp_path, program), "fuzz", case=["a"])
    assert (failed, said["exit_code"], said["answer"]) == (False, 1, ["fuzz", "--case=a", "--json"])
    assert said["said"] == ["to people"]
    assert said["gpu_seconds_left"] == 3600, "it held no device"


@pytest.mark.slow
def test_gpu_seconds_are_those_in_which_a_verb_held_the_device(tmp_path: Path) -> None:
    program = f"import time; time.sleep(0.6)\n{HOLDS % 0.3}"
    _, said = call(server(tmp_path, program), "bench")
    assert 0.3 <= round(3600 - said["gpu_seconds_left"], 1) <= said["seconds"] - 0.5, "what it did before is none"
    failed, said = call(server(tmp_path, HOLDS % 60, gpu_seconds=0.5), "bench")
    assert (failed, said["error"]["code"], said["gpu_seconds_left"]) == (True, "ended_at_limit", 0)


def test_no_secret_reaches_a_verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "KERNELGATE_REPORT_TOKEN", "KERNELGATE_BENCH_CASE"):
        monkeypatch.setenv(name, "secret")
    _, said = call(server(tmp_path, "import json,os; print(json.dumps(dict(os.environ)))"), "build")
    assert "PATH" in said["answer"]
    assert "secret" not in said["answer"].values()


def test_a_verb_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    failed, said = call(server(tmp_path, DRAWN_OUT, wall_s=0.3), "build")
    assert (failed, said["exit_code"], said["error"]["code"]) == (True, None, "ended_at_limit")
    assert named(MARK) == []


def test_two_calls_at_once_do_not_spend_one_budget_twice(tmp_path: Path) -> None:
    async def say(client: Client) -> None:
        said: list[dict[str, Any]] = []

        async def measure() -> None:
            said.append((await called(client, "bench"))[1])

        async with anyio.create_task_group() as group:
            group.start_soon(measure)
            group.start_soon(measure)
        codes = sorted(one["error"]["code"] for one in said)
        assert codes == ["budget_spent", "ended_at_limit"]

    talk(server(tmp_path, HOLDS % 60, gpu_seconds=0.2), say)


def tokens(said: Any) -> float:
    """At most: of answers of seven tools, o200k_base took 2.44 characters for each, or more."""
    return len(json.dumps(said, ensure_ascii=False)) / 2.4


def test_a_long_answer_comes_in_pages_of_at_most_1500_tokens(tmp_path: Path) -> None:
    program = "import json,sys; [print('so ' * 200, file=sys.stderr) for _ in range(99)]"
    program += "; print(json.dumps([{'kernel': f'softmax<{n}>', 'registers': n} for n in range(700)]))"

    async def say(client: Client) -> None:
        read, (_, said) = "", await called(client, "build")
        assert "answer" not in said
        while True:
            assert tokens(said) <= 1500
            read += said["page"]
            if "next" not in said:
                break
            _, said = await called(client, said["next"]["tool"], **said["next"]["arguments"])
        assert json.loads(read) == [{"kernel": f"softmax<{n}>", "registers": n} for n in range(700)]
        failed, said = await called(client, "more", answer=1, page=99)
        assert (failed, said["error"]["next"]) == (True, {"tool": "more", "arguments": {"answer": 1, "page": 1}})

    talk(server(tmp_path, program), say)


def test_what_a_verb_prints_is_bounded(tmp_path: Path) -> None:
    _, said = call(server(tmp_path, "print('x' * 3_000_000)", output_bytes=1000), "build")
    assert (said["output"], said["output_cut"]) == ("x" * 1000, "at 1000 bytes")


GATE = {"tool": "session_gate", "arguments": {"gate": "build"}}
AS_BASE = {"tool": "build", "arguments": {"as_base": True}}


@pytest.mark.parametrize(
    ("code", "said", "error", "instead"),
    [
        (3, "kernelgate: build comes first: `kernelgate session gate build`", "could_not_run", GATE),
        (64, "Error: Invalid value for '--ref': no commit", "called_wrongly", AS_BASE),
        (3, "kernelgate: there is no commit 'x'", "could_not_run", AS_BASE),
        (64, "Error: it is empty", "called_wrongly", {"tool": "cards", "arguments": {"list": True}}),
    ],
)
def test_an_error_says_what_it_is_and_the_one_call_to_make_next(
    code: int, said: str, error: str, instead: dict[str, Any], tmp_path: Path
) -> None:
    program = f"import sys; print('usage', file=sys.stderr); print({said!r}, file=sys.stderr); sys.exit({code})"
    failed, told = call(server(tmp_path, program), "build", ref="x", as_base=True)
    message = said.partition(": ")[2]
    assert (failed, told["error"]) == (True, {"code": error, "message": message, "next": instead})


def test_an_answer_names_the_next_call(tmp_path: Path) -> None:
    answer = {"next": {"command": 'kernelgate session try "A B" C --action x', "why": "so"}}
    _, said = call(server(tmp_path, f"import json; print(json.dumps({answer!r}))"), "session_next")
    assert said["next"] == {"tool": "session_try", "arguments": {"what": "A B", "why": "C", "action": "x"}}


def test_resources_and_the_prompt_are_there(tmp_path: Path) -> None:
    async def say(client: Client) -> None:
        assert client.server_info.version == version("kernelgate")
        listed = (await client.list_resources()).resources
        texts = {one.name: getattr((await client.read_resource(one.uri)).contents[0], "text", "") for one in listed}
        assert texts.keys() == {"cookbook", "patterns", "glossary"}
        assert texts["glossary"].startswith("## Glossary")
        schema = await client.read_resource("kernelgate://schema/session_next")
        assert json.loads(getattr(schema.contents[0], "text", "")) == ["schema", "--", "session next"]
        made = await client.get_prompt("session", {"session": "one"})
        assert json.loads(getattr(made.messages[0].content, "text", "")) == ["prompt", "--", "one"]
        with pytest.raises(MCPError, match="no resource"):
            await client.read_resource("kernelgate://../../etc/passwd")

    talk(server(tmp_path, "import json,sys; print(json.dumps(sys.argv[1:]))"), say)


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
from kernelgate.ci.lab import mcp_server, mcp_tools
budget = mcp_server.DeviceBudget(7200.0)
made = mcp_server.AgentsServer(pathlib.Path(sys.argv[1]), mcp_tools.offered(cli.cli), budget)
made.program = (sys.executable, "-c", os.environ["PROGRAM"])
anyio.run(made.serve)
"""


@pytest.mark.slow
def test_a_line_that_is_no_message_is_answered_and_the_next_is_too(tmp_path: Path) -> None:
    lines = 'hello\n{"a": 1}\n{"jsonrpc": "2.0", "id": 7, "method": "ping"}\n'
    with subprocess.Popen(
        [sys.executable, "-c", SERVED, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PROGRAM": ""},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines.encode())
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.stdin.close()
        assert process.wait(30) == 0
    assert [(one["id"], one.get("error", {}).get("code")) for one in answers] == [
        (None, -32700),
        (None, -32600),
        (7, None),
    ]


@pytest.mark.slow
def test_a_server_with_a_client_stops_on_signals_with_all_that_runs(tmp_path: Path) -> None:
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
        wait_for(lambda: bool(named(MARK)), what="the verb did not start")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM
    assert not named(MARK)
