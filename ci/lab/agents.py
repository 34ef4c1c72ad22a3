"""`kernelgate mcp`: the verbs as tools of the Model Context Protocol, over standard input and output.

Tools are made from the command line's own verbs, so that there is one list of options. An agent's words become an
option's value (`--case=VALUE`) or stand behind `--`; none of them can become another option. Paths lie in the checkout,
also through links; files are written below `out/` alone. Each call runs its verb as a process of its own, with a time
limit and an environment without secrets; cancelled, it leaves no process. The protocol: https://modelcontextprotocol.io,
by its official SDK.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.abc
import anyio.to_thread
import click
from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server

from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.system import orphans
from kernelgate.ci.lab import folder

OFFERED: Final = (
    "doctor", "build", "fuzz", "bench", "compare", "profile", "analyze", "decide", "recommend", "session", "patterns",
    "prompt",
)  # fmt: skip
"""Verbs; of a group, each of its verbs. What is not installed is not offered."""
LOCAL: Final = frozenset({"session page", "session review"})
"""For people: one opens a port, the other asks an expert."""
MEASURING: Final = frozenset({"doctor", "fuzz", "bench", "profile", "session try", "session gate"})
"""Those whose time is taken from the budget of the device."""
WITHHELD: Final = frozenset({"as_json", "policy_file", "preset", "token", "post", "library", "corpus", "hours"})
"""Parameters that agents do not get: what judges is the checkout's policy, and what is measured its own sources."""
OUT: Final = "out"
MAX_TEXT = 4000


class ToolRefusedError(UsageError):
    """What an agent asked for is not allowed, and why."""


@dataclass(frozen=True)
class AgentTool:
    """A verb, by its words."""

    words: tuple[str, ...]
    command: click.Command

    @property
    def name(self) -> str:
        return "_".join(self.words).replace("-", "_")

    @property
    def measures(self) -> bool:
        return " ".join(self.words) in MEASURING

    @property
    def parameters(self) -> dict[str, click.Parameter]:
        named = {str(one.name): one for one in self.command.params}
        return {name: one for name, one in named.items() if name not in WITHHELD and not name.endswith("_library")}


SESSION_GPU_SECONDS: Final = 3600.0
"""In one session: what its time boxes add up to without what people do in between."""
WALL_S: Final = 1800.0
"""Of one call: a first build takes 15 minutes at most, a measurement of all cases less."""
OUTPUT_BYTES: Final = 200_000
"""Of one answer: about 50,000 tokens, a quarter of what an agent can hold."""


@dataclass
class DeviceBudget:
    """Seconds during which verbs that measure had the device: on a machine without a GPU, the CPU."""

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
        """How long a call that measures may take. Raises ToolRefusedError where nothing is left to measure with."""
        if (left := self.left_s(session)) <= 0:
            said = f"{sum(self.spent.values()):.0f} of {self.gpu_seconds:g} GPU-seconds are spent"
            here = f", {self.spent[session]:.0f} of {self.session_gpu_seconds:g} in this session"
            raise ToolRefusedError(f"the budget is used up: {said}{here}; a person may raise [agents] and start anew")
        return min(left, self.wall_s)


def offered(root: click.Group) -> tuple[AgentTool, ...]:
    found = ((name, root.get_command(click.Context(root), name)) for name in OFFERED)
    every = [tool for name, command in found if command is not None for tool in _tools((name,), command)]
    return tuple(tool for tool in every if " ".join(tool.words) not in LOCAL)


def _tools(words: tuple[str, ...], command: click.Command) -> Iterator[AgentTool]:
    if isinstance(command, click.Group):
        for name, verb in command.commands.items():
            yield from _tools((*words, name), verb)
    else:
        yield AgentTool(words, command)


def input_schema(tool: AgentTool) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments."""
    properties = {}
    for name, one in tool.parameters.items():
        properties[name] = {"type": "array", "items": _type(one)} if _is_several(one) else _type(one)
        if said := getattr(one, "help", None):
            properties[name]["description"] = said
    required = [name for name, one in tool.parameters.items() if one.required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def command_line(tool: AgentTool, given: Mapping[str, Any], checkout: Path) -> list[str]:
    """The verb's words, without the program. Raises ToolRefusedError for anything that may not be asked for."""
    known = tool.parameters
    if strange := sorted(given.keys() - known.keys()):
        raise ToolRefusedError(f"{tool.name} takes no {strange[0][:60]!r}; it takes {', '.join(known) or 'nothing'}")
    options, places = list[str](), list[str]()
    for name, one in known.items():
        if (value := given.get(name)) is None:
            if one.required:
                raise ToolRefusedError(f"{tool.name} needs {name!r}")
        elif not isinstance(one, click.Option):
            places += _values(one, value, checkout)
        elif not one.is_flag:
            options += [f"{_long(one)}={text}" for text in _values(one, value, checkout)]
        elif not isinstance(value, bool):
            raise ToolRefusedError(f"{name!r} is true or false")
        elif value:
            options.append(_long(one))
    takes_json = any(one.name == "as_json" for one in tool.command.params)
    json = ["--json"] if takes_json else []
    return [*tool.words, *options, *json, *(["--", *places] if places else [])]


def _long(one: click.Option) -> str:
    return next(opt for opt in one.opts if opt.startswith("--"))


def inside(checkout: Path, text: str, below: str = "") -> Path:
    """The path, relative to the checkout. Raises ToolRefusedError where it leads out of it, or of `below`."""
    root = checkout.resolve()
    whole = (root / text).resolve()
    if not whole.is_relative_to(root / below) or ".git" in whole.relative_to(root).parts:
        where = f"{below}/ of the checkout" if below else "the checkout"
        raise ToolRefusedError(f"{text[:200]!r} does not lie in {where}")
    return whole.relative_to(root)


def _type(one: click.Parameter) -> dict[str, Any]:
    if isinstance(one, click.Option) and one.is_flag:
        return {"type": "boolean"}
    if isinstance(one.type, click.Choice):
        return {"type": "string", "enum": list(one.type.choices)}
    number = {"integer": "integer", "float": "number"}.get(one.type.name.removesuffix(" range"))
    return {"type": number} if number else {"type": "string", "maxLength": MAX_TEXT}


def _is_several(one: click.Parameter) -> bool:
    return one.multiple or one.nargs == -1


def _values(one: click.Parameter, given: object, checkout: Path) -> list[str]:
    if not _is_several(one):
        return [_value(one, given, checkout)]
    if not isinstance(given, list):
        raise ToolRefusedError(f"{one.name!r} takes a list")
    return [_value(one, value, checkout) for value in given]


def _value(one: click.Parameter, value: object, checkout: Path) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ToolRefusedError(f"{one.name!r} takes {_type(one)['type']}s, not {type(value).__name__}")
    text = str(value)
    if len(text) > MAX_TEXT or not all(c.isprintable() or c == "\n" for c in text):
        raise ToolRefusedError(f"{one.name!r} takes text of at most {MAX_TEXT} characters, all of them printable")
    if isinstance(one.type, click.Path):
        is_left = hasattr(one.type, "is_folder")  # the OutputPath of ci/commands/options.py
        return str(inside(checkout, text, OUT if is_left else ""))
    if text.startswith("-") and _type(one)["type"] == "string":
        raise ToolRefusedError(f"{one.name!r} is {text[:60]!r}: a value does not begin with -, as an option does")
    return text


# ---- the server ------------------------------------------------------------------------------------------------------

PASSED_ON: Final = {
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "PYTHONPATH", "TERM", "TMPDIR", "TZ",
    "USER", "VIRTUAL_ENV", "XDG_CACHE_HOME", "KERNELGATE_CACHE", "CC", "CXX", "CUDAHOSTCXX", "CUDA_HOME", "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "TORCH_CUDA_ARCH_LIST", "CCACHE_DIR", "MAX_JOBS",
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
}  # fmt: skip
"""Of the environment; everything else, such as tokens, stays with the server."""
ANSWERS: Final = frozenset({0, 1, 2, 4})
"""Exit codes by which verbs answer; with others they could not run, or were called wrongly."""
LAST_LINES = 40
AT_ONCE: Final = 2
"""Verbs that run at the same time; others wait for their turn."""
INSTRUCTIONS = (
    "kernelgate judges whether a change makes a GPU kernel faster, and how sure that is. Begin with session_new or "
    "doctor; change one thing at a time; believe what compare says, not single times. AGENTS.md tells how to work here."
)
PROGRAM: Final = (sys.executable, "-m", "kernelgate.ci.commands.cli")


@dataclass(frozen=True)
class Ended:
    """A verb that ran; `code` is None where it was ended at its limit."""

    code: int | None
    out: bytes
    err: bytes
    seconds: float


class AgentsServer:
    """One agent's connection: which tools there are, and what it has used of the device."""

    def __init__(self, checkout: Path, offered: tuple[AgentTool, ...], budget: DeviceBudget) -> None:
        self.checkout, self.budget = checkout, budget
        self.tools = {tool.name: tool for tool in offered}
        self.program = PROGRAM
        self._device, self._places = anyio.Lock(), anyio.CapacityLimiter(AT_ONCE)
        self._running: set[int] = set()
        self._starting = anyio.Lock()
        self.protocol: Server[Any] = Server(
            "kernelgate", instructions=INSTRUCTIONS, on_list_tools=self._list, on_call_tool=self._call
        )

    async def serve(self) -> None:
        """Until the client closes its end, or a signal ends this process."""
        async with anyio.create_task_group() as both:
            both.start_soon(self._end_on_signals)
            async with stdio_server() as (reading, writing):
                await self.protocol.run(reading, writing, self.protocol.create_initialization_options())
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

    async def _list(self, _: object, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        listed = [
            types.Tool(name=name, description=tool.command.help or name, input_schema=input_schema(tool))
            for name, tool in self.tools.items()
        ]
        return types.ListToolsResult(tools=listed)

    async def _call(self, _: object, asked: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            said = await self.answer(asked.name, asked.arguments or {})
        except KernelgateError as error:
            said = {"refused": str(error)}
        text = types.TextContent(type="text", text=json.dumps(said, ensure_ascii=False))
        failed = said.get("exit_code") not in ANSWERS
        return types.CallToolResult(content=[text], structured_content=said, is_error=failed)

    async def answer(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """What the tool came to. Raises ToolRefusedError; KernelgateError where a session's log is broken."""
        if name not in self.tools:
            raise ToolRefusedError(f"there is no tool {name[:60]!r}; there are {', '.join(self.tools)}")
        tool = self.tools[name]
        words = command_line(tool, given, self.checkout)
        if not tool.measures:
            return self._said(tool, await self._run(words, self.budget.wall_s))
        async with self._device:  # one at a time: two would slow each other down, and spend one budget twice
            session = self._session(given)
            limit = self.budget.limit_s(session)
            began = time.monotonic()
            try:
                ended = await self._run(words, limit)
            finally:
                self.budget.spent[session] += time.monotonic() - began
            return self._said(tool, ended) | {"gpu_seconds_left": round(self.budget.left_s(session), 1)}

    def _session(self, given: Mapping[str, Any]) -> str:
        named = given.get("session") or given.get("name")
        if isinstance(named, str):
            return named
        started = folder.waiting_in(self.checkout)
        return started[0].name if len(started) == 1 else ""

    async def _run(self, words: list[str], limit_s: float) -> Ended:
        async with self._places:
            return await self._run_alone(words, limit_s)

    async def _run_alone(self, words: list[str], limit_s: float) -> Ended:
        began = time.monotonic()
        variables = {name: value for name, value in os.environ.items() if name in PASSED_ON}
        async with self._starting:
            process = await anyio.open_process(
                [*self.program, *words],
                stdin=subprocess.DEVNULL,
                cwd=self.checkout,
                env={**variables, "NO_COLOR": "1"},
                start_new_session=True,
            )
            self._running.add(process.pid)
        out, err = bytearray(), bytearray()
        with orphans.ended_with_us(process.pid):
            try:
                with anyio.move_on_after(limit_s):
                    async with anyio.create_task_group() as both:
                        both.start_soon(self._read, process.stdout, out)
                        both.start_soon(self._read, process.stderr, err)
                    await process.wait()
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

    def _said(self, tool: AgentTool, ended: Ended) -> dict[str, Any]:
        most = self.budget.output_bytes
        text, is_cut = ended.out[:most].decode(errors="replace"), len(ended.out) > most
        said = {
            "command": f"kernelgate {' '.join(tool.words)}",
            "exit_code": ended.code,
            "answer": None if is_cut else _parsed(text),
            "said": ended.err[:most].decode(errors="replace").splitlines()[-LAST_LINES:],
            "seconds": round(ended.seconds, 1),
        }
        if said["answer"] is None and text.strip():
            said["output"] = text
        if is_cut:
            said["output_cut"] = f"at {most} bytes"
        if ended.code is None:
            limit = f"its limit of {ended.seconds:.0f} s"
            said["ended"] = f"it ran into {limit} and was ended, with all that it had started"
        return said


def _parsed(text: str) -> Any:
    """One JSON value, or those of its lines; None where it is neither."""
    for read in (json.loads, lambda text: [json.loads(line) for line in text.splitlines()] or None):
        with suppress(ValueError):
            return read(text)
    return None
