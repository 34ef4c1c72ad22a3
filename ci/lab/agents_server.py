"""`kernelgate mcp`: the verbs as tools of the Model Context Protocol, over standard input and output.

Each call runs its verb as a process of its own, with a time limit and an environment without secrets; cancelled, it
leaves no process. The protocol: https://modelcontextprotocol.io, by its official SDK.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.abc
import anyio.to_thread
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system import orphans
from kernelgate.ci.lab import agent_tools as tools
from kernelgate.ci.lab import folder
from kernelgate.ci.lab.agent_tools import AgentTool, DeviceBudget, ToolRefusedError

PASSED_ON: Final = frozenset(
    {
        "HOME",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LD_LIBRARY_PATH",
        "LOGNAME",
        "PATH",
        "PYTHONPATH",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
    }
    | {"VIRTUAL_ENV", "XDG_CACHE_HOME", "KERNELGATE_CACHE", "CC", "CXX", "CUDAHOSTCXX", "CUDA_HOME", "CUDA_PATH"}
    | {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "TORCH_CUDA_ARCH_LIST", "CCACHE_DIR", "MAX_JOBS"}
    | {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}
)
"""Of the environment; everything else, such as tokens, stays with the server."""
ANSWERS: Final = frozenset({0, 1, 2, 4})
"""Exit codes by which verbs answer; with others they could not run, or were called wrongly."""
LAST_LINES = 40
"""Of what a verb said to people."""
INSTRUCTIONS = (
    "kernelgate judges whether a change makes a GPU kernel faster, and how sure that is. Begin with session_new or "
    "doctor; change one thing at a time; believe what compare says, not single times. AGENTS.md tells how to work here."
)
PROGRAM: Final = (sys.executable, "-m", "kernelgate.ci.commands.cli")


@dataclass(frozen=True)
class Ended:
    """A verb that ran."""

    code: int | None
    """None: it was ended at its limit."""
    out: bytes
    err: bytes
    cut: bool
    """Whether it printed more than is kept."""
    seconds: float


class AgentsServer:
    """One agent's connection: which tools there are, and what it has used of the device."""

    def __init__(self, checkout: Path, offered: tuple[AgentTool, ...], budget: DeviceBudget) -> None:
        self.checkout, self.budget = checkout, budget
        self.tools = {tool.name: tool for tool in offered}
        self.program = PROGRAM
        self._device = anyio.Lock()
        self.protocol: Server[Any] = Server(
            "kernelgate", instructions=INSTRUCTIONS, on_list_tools=self._list, on_call_tool=self._call
        )

    async def serve(self) -> None:
        """Until the client closes its end."""
        async with stdio_server() as (reading, writing):
            await self.protocol.run(reading, writing, self.protocol.create_initialization_options())

    async def _list(
        self, _: ServerRequestContext[Any], __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        listed = [
            types.Tool(name=name, description=tool.command.help or name, input_schema=tools.input_schema(tool))
            for name, tool in self.tools.items()
        ]
        return types.ListToolsResult(tools=listed)

    async def _call(self, _: ServerRequestContext[Any], asked: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            return _result(await self.answer(asked.name, asked.arguments or {}))
        except KernelgateError as error:
            return _result({"refused": str(error)}, is_error=True)

    async def answer(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """What the tool came to. Raises ToolRefusedError; KernelgateError where a session's log is broken."""
        if name not in self.tools:
            raise ToolRefusedError(f"there is no tool {name[:60]!r}; there are {', '.join(self.tools)}")
        tool = self.tools[name]
        words = tools.command_line(tool, given, self.checkout)
        if not tool.measures:
            return self._said(tool, await self._run(words, self.budget.wall_s), "")
        async with self._device:  # one at a time: two would slow each other down, and spend one budget twice
            session = self._session(given)
            limit = self.budget.limit_s(session, measures=True)
            began = time.monotonic()
            try:
                ended = await self._run(words, limit)
            finally:
                self.budget = self.budget.charged(session, time.monotonic() - began)
            return self._said(tool, ended, session)

    def _session(self, given: Mapping[str, Any]) -> str:
        named = given.get("session") or given.get("name")
        if isinstance(named, str):
            return named
        started = folder.waiting_in(self.checkout)
        return started[0].name if len(started) == 1 else ""

    async def _run(self, words: list[str], limit_s: float) -> Ended:
        began = time.monotonic()
        variables = {name: value for name, value in os.environ.items() if name in PASSED_ON}
        process = await anyio.open_process(
            [*self.program, *words],
            stdin=subprocess.DEVNULL,
            cwd=self.checkout,
            env={**variables, "NO_COLOR": "1"},
            start_new_session=True,
        )
        most = self.budget.output_bytes
        out, err = _Kept(most), _Kept(most)
        with orphans.ended_with_us(process.pid):
            try:
                with anyio.move_on_after(limit_s):
                    async with anyio.create_task_group() as both:
                        both.start_soon(_read, process.stdout, out)
                        both.start_soon(_read, process.stderr, err)
                    await process.wait()
            finally:
                with anyio.CancelScope(shield=True):
                    code = process.returncode
                    await anyio.to_thread.run_sync(orphans.end_session, process.pid)
                    await process.aclose()
        return Ended(code, bytes(out.data), bytes(err.data), out.cut, time.monotonic() - began)

    def _said(self, tool: AgentTool, ended: Ended, session: str) -> dict[str, Any]:
        text = ended.out.decode(errors="replace")
        answer = None if ended.cut else _parsed(text)
        lines = ended.err.decode(errors="replace").splitlines()[-LAST_LINES:]
        said = {
            "command": f"kernelgate {' '.join(tool.words)}",
            "exit_code": ended.code,
            "answer": answer,
            "said": lines,
            "seconds": round(ended.seconds, 1),
        }
        if answer is None and text.strip():
            said["output"] = text
        if ended.cut:
            said["output_cut"] = f"at {self.budget.output_bytes} bytes"
        if ended.code is None:
            said["ended"] = (
                f"it ran into its limit of {ended.seconds:.0f} s and was ended, with all that it had started"
            )
        if tool.measures:
            said["gpu_seconds_left"] = round(self.budget.left_s(session), 1)
        return said


@dataclass
class _Kept:
    most: int
    data: bytearray
    cut: bool

    def __init__(self, most: int) -> None:
        self.most, self.data, self.cut = most, bytearray(), False

    def add(self, chunk: bytes) -> None:
        room = self.most - len(self.data)
        self.data += chunk[:room]
        self.cut = self.cut or len(chunk) > room


async def _read(stream: anyio.abc.ByteReceiveStream | None, kept: _Kept) -> None:
    """To its end, whatever is kept of it: a verb whose output nobody reads would wait."""
    if stream is not None:
        async for chunk in stream:
            kept.add(chunk)


def _parsed(text: str) -> Any:
    """One JSON value, or those of its lines; None where it is neither."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines()] or None
    except ValueError:
        return None


def _result(said: dict[str, Any], is_error: bool = False) -> types.CallToolResult:
    failed = is_error or said.get("exit_code") not in ANSWERS
    text = json.dumps(said, ensure_ascii=False)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=said, is_error=failed
    )
