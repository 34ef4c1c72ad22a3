"""`kernelgate mcp`: serves the tools of ci/lab/mcp_tools.py over standard input and output.

Each call runs its verb as a process of its own, with a time limit and an environment without secrets; cancelled, it
leaves no process. The protocol: https://modelcontextprotocol.io, by its official SDK.
"""

from __future__ import annotations

import difflib
import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.abc
import anyio.to_thread
from mcp import MCPError, types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system import lock, orphans
from kernelgate.bench.system.lock import DeviceLog
from kernelgate.ci.lab import folder, mcp_tools
from kernelgate.ci.lab.mcp_tools import AgentTool, AnswerPages, ToolCall, ToolRefusedError

SESSION_GPU_SECONDS: Final = 3600.0
"""In one session: what its time boxes add up to without what people do in between."""
WALL_S: Final = 1800.0
"""Of one call: a first build takes 15 minutes at most, a measurement of all cases less."""
OUTPUT_BYTES: Final = 200_000
"""Of what a verb prints, and of answers that are kept for their later pages."""
LAST_LINES, LINE = 6, 160
"""Of what a verb said to people, and characters of each."""
PROGRESS_S: Final = 10.0
"""At the latest so often a client hears that a call goes on: some give up after 60 s of silence."""
LOOK_S: Final = 0.5
AT_ONCE: Final = 2
"""Verbs that run at the same time; others wait for their turn."""
PASSED_ON: Final = {
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "PYTHONPATH", "TERM", "TMPDIR", "TZ",
    "USER", "VIRTUAL_ENV", "XDG_CACHE_HOME", "KERNELGATE_CACHE", "CC", "CXX", "CUDAHOSTCXX", "CUDA_HOME", "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "TORCH_CUDA_ARCH_LIST", "CCACHE_DIR", "MAX_JOBS",
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
}  # fmt: skip
"""Of the environment; everything else, such as tokens, stays with the server."""
ANSWERS: Final = frozenset({0, 1, 2, 4})
"""Exit codes by which verbs answer; with others they could not run, or were called wrongly."""
INSTRUCTIONS = (
    "kernelgate judges whether a change makes a GPU kernel faster, and how sure that is. Begin with session_new or "
    "doctor; change one thing at a time; believe what compare says, not single times. Each answer's `next` is the call "
    "that comes next. Exit codes: 0 done or faster, 1 slower or wrong, 2 nothing to say, 3 could not run, 4 the "
    "session's time or money is spent, 64 called wrongly."
)
PROGRAM: Final = (sys.executable, "-P", "-m", "kernelgate.ci.commands.cli")
RESOURCES: Final = {
    "cookbook": ("CUDA_COOKBOOK.md", "", "What helps against which bottleneck"),
    "patterns": ("patterns.md", "", "Patterns of optimisation sessions"),
    "glossary": ("questions.md", "## Glossary\n", "The words that kernelgate uses"),
}
"""By name: a file of this folder, the heading from which on it is shown, and a title."""
SCHEMA = "kernelgate://schema/"
MORE: Final = types.Tool(
    name="more",
    description="Read a further page of an answer that was too long for one.",
    input_schema={
        "type": "object",
        "properties": {
            "answer": {"type": "integer", "description": "Its number"},
            "page": {"type": "integer", "description": "From 1"},
        },
        "required": ["answer", "page"],
    },
    annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
)


@dataclass
class DeviceBudget:
    """Seconds in which verbs held the device: on a machine without a GPU, the CPU. Compiling and waiting are none."""

    gpu_seconds: float
    session_gpu_seconds: float = SESSION_GPU_SECONDS
    wall_s: float = WALL_S
    output_bytes: int = OUTPUT_BYTES
    spent: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """By session; "" where none is open."""

    def left_s(self, session: str) -> float:
        """Of the server's budget and of the session's, the less."""
        left = min(self.gpu_seconds - sum(self.spent.values()), self.session_gpu_seconds - self.spent[session])
        return max(0.0, left)

    def limit_s(self, session: str) -> float:
        """What is left to measure with. Raises ToolRefusedError where nothing is."""
        if (left := self.left_s(session)) <= 0:
            said = f"{sum(self.spent.values()):.0f} of {self.gpu_seconds:g} GPU-seconds are spent"
            here = f", {self.spent[session]:.0f} of {self.session_gpu_seconds:g} in this session"
            more = "a person may raise [agents] and start anew"
            close = ToolCall("session_close", {"why": "cost"}) if session else ToolCall("session_metrics")
            raise ToolRefusedError("budget_spent", f"the budget is used up: {said}{here}; {more}", close)
        return left


@dataclass(frozen=True)
class Ended:
    """A verb that ran; `code` is None where it was ended at a limit."""

    code: int | None
    out: bytes
    err: bytes
    seconds: float


Tell = Callable[[float, str], Any]
"""Tells the client that a call goes on: for how many seconds, and what it said last."""


class AgentsServer:
    """One agent's connection: which tools there are, and what it has used of the device."""

    def __init__(self, checkout: Path, offered: tuple[AgentTool, ...], budget: DeviceBudget) -> None:
        self.checkout, self.budget = checkout, budget
        self.tools = {tool.name: tool for tool in offered}
        self.program = PROGRAM
        self._device, self._places = anyio.Lock(), anyio.CapacityLimiter(AT_ONCE)
        self._running: set[int] = set()
        self._starting = anyio.Lock()
        self._pages = AnswerPages()
        self.protocol: Server[Any] = Server(
            "kernelgate",
            version=version("kernelgate"),
            instructions=INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    async def serve(self) -> None:
        """Until the client closes its end, or a signal ends this process."""
        async with anyio.create_task_group() as both:
            both.start_soon(self._end_on_signals)
            async with stdio_server() as (reading, writing):
                passing, messages = anyio.create_memory_object_stream[Any](0)
                both.start_soon(_refuse, reading, passing, writing)
                await self.protocol.run(messages, writing, self.protocol.create_initialization_options())
            both.cancel_scope.cancel()

    async def _end_on_signals(self) -> None:
        """With all that runs: who waits for the client's next line cannot be asked to end."""
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as received:
            async for number in received:
                async with self._starting:  # what is being started is known afterwards, and nothing else is started
                    for pid in tuple(self._running):
                        await anyio.to_thread.run_sync(orphans.end_session, pid)
                    print(f"kernelgate: stopped by {signal.Signals(number).name}", file=sys.stderr, flush=True)
                    os._exit(128 + number)

    # ---- tools -------------------------------------------------------------------------------------------------------

    async def _list(self, _: object, __: object) -> types.ListToolsResult:
        listed = [
            types.Tool(
                name=name,
                description=tool.description,
                input_schema=mcp_tools.input_schema(tool),
                annotations=types.ToolAnnotations(
                    read_only_hint=tool.reads_only,
                    destructive_hint=None if tool.reads_only else tool.verb in mcp_tools.DESTRUCTIVE,
                    open_world_hint=False,
                ),
            )
            for name, tool in self.tools.items()
        ]
        return types.ListToolsResult(tools=[*listed, MORE])

    async def _call(self, context: ServerRequestContext[Any], asked: types.CallToolRequestParams) -> Any:
        async def tell(seconds: float, last: str) -> None:
            await context.session.report_progress(seconds, message=last)

        try:
            said = await self.answer(asked.name, asked.arguments or {}, tell)
        except ToolRefusedError as error:
            said = {"error": error.shown()}
        except KernelgateError as error:
            instead = mcp_tools.next_after(str(error), 3, ToolCall(""), self.tools)
            said = {"error": ToolRefusedError("could_not_run", str(error), instead).shown()}
        text = types.TextContent(type="text", text=json.dumps(said, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=said, is_error="error" in said)

    async def answer(self, name: str, given: Mapping[str, Any], tell: Tell | None = None) -> dict[str, Any]:
        """What the tool came to. Raises ToolRefusedError; KernelgateError where a session's log is broken."""
        if name == MORE.name:
            return self._pages.more(given)
        if name not in self.tools:
            near = difflib.get_close_matches(name, self.tools, 1, 0.4)
            said = f"there is no tool {name[:60]!r}"
            raise ToolRefusedError("unknown_tool", said, ToolCall(near[0] if near else "session_status"))
        tool, call = self.tools[name], ToolCall(name, given)
        words = mcp_tools.command_line(tool, given, self.checkout)
        if not tool.measures:
            return self._said(tool, call, await self._run(words, tell))
        async with self._device:  # one at a time: two would slow each other down, and spend one budget twice
            session = self._session(given)
            left = self.budget.limit_s(session)
            with lock.device_log() as device:
                try:
                    ended = await self._run(words, tell, device, left)
                finally:
                    self.budget.spent[session] += device.held_s()
            return self._said(tool, call, ended) | {"gpu_seconds_left": round(self.budget.left_s(session), 1)}

    def _session(self, given: Mapping[str, Any]) -> str:
        if isinstance(named := given.get("session"), str):
            return named
        started = folder.waiting_in(self.checkout)
        return started[0].name if len(started) == 1 else ""

    def _said(self, tool: AgentTool, call: ToolCall, ended: Ended) -> dict[str, Any]:
        most = self.budget.output_bytes
        text, is_cut = ended.out[:most].decode(errors="replace"), len(ended.out) > most
        lines = [line[:LINE] for line in ended.err[:most].decode(errors="replace").splitlines() if line.strip()]
        answer = None if is_cut else mcp_tools.parsed(text)
        said = {
            "command": f"kernelgate {tool.verb}",
            "exit_code": ended.code,
            "said": lines[-LAST_LINES:],
            "seconds": round(ended.seconds, 1),
            **self._pages.first((text.strip() or None) if answer is None else answer),
        }
        if is_cut:
            said["output_cut"] = f"at {most} bytes"
        named = answer.get("next") if isinstance(answer, dict) else None
        command = named.get("command") if isinstance(named, dict) else named
        if "next" not in said and isinstance(command, str) and (found := mcp_tools.call_of(command, self.tools)):
            said["next"] = asdict(found)
        if ended.code not in ANSWERS:
            without_words = "its answer says why" if answer else "it printed nothing"
            said["error"] = self._error(ended, call, lines[-1] if lines else without_words).shown()
        return said

    def _error(self, ended: Ended, call: ToolCall, last: str) -> ToolRefusedError:
        if ended.code is None:
            said = f"it ran into its limit after {ended.seconds:.0f} s and was ended, with all that it had started"
            return ToolRefusedError("ended_at_limit", said, ToolCall("doctor"))
        code: mcp_tools.Code = "called_wrongly" if ended.code == 64 else "could_not_run"
        said = last.removeprefix("kernelgate: ").removeprefix("Error: ")
        return ToolRefusedError(code, said, mcp_tools.next_after(last, ended.code, call, self.tools))

    # ---- resources and the prompt ------------------------------------------------------------------------------------

    async def _list_resources(self, _: object, __: object) -> types.ListResourcesResult:
        listed = [
            types.Resource(uri=f"kernelgate://{name}", name=name, title=title, mime_type="text/markdown")
            for name, (_, _, title) in RESOURCES.items()
        ]
        return types.ListResourcesResult(resources=listed)

    async def _list_templates(self, _: object, __: object) -> types.ListResourceTemplatesResult:
        about = "The JSON Schema of what a tool's `answer` holds"
        made = types.ResourceTemplate(uri_template=f"{SCHEMA}{{tool}}", name="schema", title=about)
        return types.ListResourceTemplatesResult(resource_templates=[made])

    async def _read_resource(self, _: object, asked: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(asked.uri)
        if found := RESOURCES.get(uri.removeprefix("kernelgate://")):
            file, heading, _title = found
            text = (Path(__file__).parent / file).read_text(encoding="utf-8")
            return _read(uri, "text/markdown", text[text.index(heading) :])
        if tool := self.tools.get(uri.removeprefix(SCHEMA)):
            return _read(uri, "application/json", await self._printed(["schema", "--", tool.verb]))
        raise MCPError(types.INVALID_PARAMS, f"there is no resource {uri[:100]}")

    async def _list_prompts(self, _: object, __: object) -> types.ListPromptsResult:
        named = types.PromptArgument(name="session", description="Default: the one that is open", required=False)
        about = "What work on a session begins with: objective, state, constraints, last results"
        return types.ListPromptsResult(prompts=[types.Prompt(name="session", description=about, arguments=[named])])

    async def _get_prompt(self, _: object, asked: types.GetPromptRequestParams) -> types.GetPromptResult:
        session = self._session(asked.arguments or {})
        if asked.name != "session" or not session:
            raise MCPError(types.INVALID_PARAMS, "the prompt is `session`; no one session is open, so name one")
        text = types.TextContent(type="text", text=await self._printed(["prompt", "--", session]))
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])

    async def _printed(self, words: list[str]) -> str:
        ended = await self._run(words)
        if ended.code:
            raise MCPError(types.INVALID_PARAMS, ended.err.decode(errors="replace").strip()[:LINE])
        return ended.out.decode(errors="replace")

    # ---- processes ---------------------------------------------------------------------------------------------------

    async def _run(
        self, words: list[str], tell: Tell | None = None, device: DeviceLog | None = None, left_s: float = 0.0
    ) -> Ended:
        """`device`: which it may hold for `left_s`."""
        async with self._places:
            began = time.monotonic()
            variables = {name: value for name, value in os.environ.items() if name in PASSED_ON}
            async with self._starting:
                process = await anyio.open_process(
                    [*self.program, *words],
                    stdin=subprocess.DEVNULL,
                    cwd=self.checkout,
                    env={**variables, **(device.variables if device else {}), "NO_COLOR": "1"},
                    start_new_session=True,
                )
                self._running.add(process.pid)
            out, err = bytearray(), bytearray()

            async def follow(limit: anyio.CancelScope) -> None:
                told_s, last = -PROGRESS_S, ""
                while device is None or device.held_s() < left_s:
                    lines = bytes(err[-2 * LINE :]).decode(errors="replace").split("\n")[:-1]
                    line = next((line.strip() for line in reversed(lines) if line.strip()), "")[:LINE]
                    now_s = time.monotonic() - began
                    if line != last or now_s - told_s >= PROGRESS_S:
                        told_s, last = now_s, line
                        if tell:
                            await tell(now_s, line)
                    await anyio.sleep(LOOK_S)
                limit.cancel()

            with orphans.ended_with_us(process.pid):
                try:
                    with anyio.move_on_after(self.budget.wall_s) as limit:
                        async with anyio.create_task_group() as watching:
                            watching.start_soon(follow, limit)
                            async with anyio.create_task_group() as both:
                                both.start_soon(self._read, process.stdout, out)
                                both.start_soon(self._read, process.stderr, err)
                            await process.wait()
                            watching.cancel_scope.cancel()
                finally:
                    with anyio.CancelScope(shield=True):
                        code = process.returncode
                        await anyio.to_thread.run_sync(orphans.end_session, process.pid)
                        self._running.discard(process.pid)
                        await process.aclose()
            return Ended(code, bytes(out), bytes(err), time.monotonic() - began)

    async def _read(self, stream: anyio.abc.ByteReceiveStream | None, kept: bytearray) -> None:
        """To its end, with one byte above the limit kept: a verb whose output nobody reads would wait."""
        if stream is not None:
            async for chunk in stream:
                kept += chunk[: self.budget.output_bytes + 1 - len(kept)]


async def _refuse(reading: Any, passing: Any, writing: Any) -> None:
    """Passes messages on, and answers what is none, which the SDK would drop: a client would wait for ever."""
    async with passing:
        async for one in reading:
            if isinstance(one, Exception):
                code = types.PARSE_ERROR if "Invalid JSON" in str(one) else types.INVALID_REQUEST
                said = "this line is no JSON-RPC message: see https://www.jsonrpc.org/specification"
                error = types.ErrorData(code=code, message=said)
                await writing.send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=None, error=error)))
            else:
                await passing.send(one)


def _read(uri: str, kind: str, text: str) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=text)])
