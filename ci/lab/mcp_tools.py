"""The command line's verbs as tools of the Model Context Protocol, which ci/lab/mcp_server.py serves.

Tools are made from the click commands, so that there is one list of options: an argument is called as its flag or as
the place in the usage line. An agent's words become an option's value (`--case=VALUE`) or stand behind `--`; none of
them can become another option. Paths lie in the checkout, also through links; files are written below `out/` alone.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import click

from kernelgate.bench.core.errors import UsageError

OFFERED: Final = (
    "doctor", "cards", "build", "fuzz", "bench", "try", "accuracy", "sanitize", "profile", "resources", "compare",
    "analyze", "decide", "recommend", "outcomes", "bisect", "history show", "history changes", "history culprits",
    "session", "patterns",
)  # fmt: skip
"""Verbs; of a group, each of its verbs. What is not installed is not offered."""
LOCAL: Final = frozenset({"session review"})
"""For people: it asks an expert."""
MEASURING: Final = frozenset(
    {"doctor", "fuzz", "bench", "try", "accuracy", "sanitize", "profile", "bisect", "session try", "session gate"}
)
"""Those that hold the device, whose seconds are limited."""
CHANGING: Final = frozenset({"build", "session new", "session keep", "session note", "session cost", "session close"})
"""Those that leave something besides, in the cache or in a session's log."""
DESTRUCTIVE: Final = frozenset({"session revert"})
"""It changes the sources of the working tree; what they were is kept as a patch."""
WITHHELD: Final = frozenset(
    {"as_json", "policy_file", "preset", "token", "post", "library", "corpus", "hours", "python", "env_a", "env_b"}
)
"""Parameters that agents do not get: what judges is the checkout's policy, and what is measured its own sources."""
OUT: Final = "out"
MAX_TEXT = 4000

Code = Literal[
    "unknown_tool", "unknown_argument", "missing_argument", "invalid_argument", "not_allowed", "budget_spent",
    "could_not_run", "called_wrongly", "ended_at_limit",
]  # fmt: skip


@dataclass(frozen=True)
class ToolCall:
    """What an agent is told to do next."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


class ToolRefusedError(UsageError):
    """What an agent asked for is not done, why, and the one thing to do instead."""

    def __init__(self, code: Code, said: str, instead: ToolCall) -> None:
        super().__init__(said)
        self.code, self.instead = code, instead

    def shown(self) -> dict[str, Any]:
        return {"code": self.code, "message": str(self), "next": asdict(self.instead)}


@dataclass(frozen=True)
class AgentTool:
    words: tuple[str, ...]
    command: click.Command

    @property
    def name(self) -> str:
        return "_".join(self.words).replace("-", "_")

    @property
    def verb(self) -> str:
        return " ".join(self.words)

    @property
    def measures(self) -> bool:
        return self.verb in MEASURING

    @property
    def reads_only(self) -> bool:
        changes = self.measures or self.verb in CHANGING | DESTRUCTIVE
        return not changes and not any(_is_left(one) for one in self.parameters.values())

    @property
    def description(self) -> str:
        """The first sentence of the verb's help."""
        first = " ".join((self.command.help or self.verb).split("\n\n")[0].split())
        return f"{first.partition('. ')[0].rstrip('.')}."

    @property
    def parameters(self) -> dict[str, click.Parameter]:
        """By the names that agents use."""
        offered = (one for one in self.command.params if str(one.name) not in WITHHELD)
        return {argument_name(one): one for one in offered if not str(one.name).endswith("_library")}


def argument_name(one: click.Parameter) -> str:
    """As the flag has it, or the place in the usage line: `--time-limit` is time_limit, REPORT_OR_RECORD in small."""
    text = _long(one)[2:] if isinstance(one, click.Option) else str(one.metavar or one.name).strip("[]").lower()
    return text.replace("-", "_")


def offered(root: click.Group) -> tuple[AgentTool, ...]:
    tools = []
    for verb in OFFERED:
        words = tuple(verb.split())
        found: click.Command | None = root
        for word in words:
            found = found.get_command(click.Context(found), word) if isinstance(found, click.Group) else None
        if isinstance(found, click.Group):
            tools += [AgentTool((*words, name), command) for name, command in found.commands.items()]
        elif found is not None:
            tools.append(AgentTool(words, found))
    return tuple(tool for tool in tools if tool.verb not in LOCAL)


def input_schema(tool: AgentTool) -> dict[str, Any]:
    properties = {}
    for name, one in tool.parameters.items():
        properties[name] = {"type": "array", "items": _type(one)} if _is_several(one) else _type(one)
        if said := getattr(one, "help", None):
            properties[name]["description"] = said.removesuffix(".")
    required = [name for name, one in tool.parameters.items() if one.required]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def command_line(tool: AgentTool, given: Mapping[str, Any], checkout: Path) -> list[str]:
    """The verb's words, without the program. Raises ToolRefusedError for anything that may not be asked for."""
    known = tool.parameters
    given = {name.replace("-", "_"): value for name, value in given.items() if value is not None}
    if strange := sorted(given.keys() - known.keys()):
        name = strange[0]
        near = difflib.get_close_matches(name, [one for one in known if one not in given], 1)
        rest = {one: value for one, value in given.items() if one in known}
        said = f"{tool.name} has no argument {name[:60]!r}; it takes {', '.join(known) or 'nothing'}"
        call = ToolCall(tool.name, rest | ({near[0]: given[name]} if near else {}))
        raise ToolRefusedError("unknown_argument", said, call)
    options, places = list[str](), list[str]()
    for name, one in known.items():
        try:
            words = _words(name, one, given[name], checkout) if name in given else []
        except (ValueError, PermissionError) as error:
            code: Code = "not_allowed" if isinstance(error, PermissionError) else "invalid_argument"
            raise ToolRefusedError(code, str(error), without(tool, given, name)) from None
        if one.required and not words:
            raise ToolRefusedError("missing_argument", f"{tool.name} needs {name}", without(tool, given, name))
        (options if isinstance(one, click.Option) else places).extend(words)
    if any(one.name == "as_json" for one in tool.command.params):
        options.append("--json")
    return [*tool.words, *options, *(["--", *places] if places else [])]


def without(tool: AgentTool, given: Mapping[str, Any], name: str) -> ToolCall:
    """The same call without this argument, or with a word in its place where it is required."""
    one, rest = tool.parameters[name], {other: value for other, value in given.items() if other != name}
    stands_for = [f"<{name}>"] if _is_several(one) else f"<{name}>"
    return ToolCall(tool.name, rest | ({name: stands_for} if one.required else {}))


def _words(name: str, one: click.Parameter, given: object, checkout: Path) -> list[str]:
    """Raises ValueError, and PermissionError for a path that leads elsewhere."""
    if isinstance(one, click.Option) and one.is_flag:
        if not isinstance(given, bool):
            raise ValueError(f"{name} is true or false")
        return [_long(one)] if given else []
    several: Any = given if _is_several(one) else [given]
    if not isinstance(several, list):
        raise ValueError(f"{name} takes a list")
    texts = [_text(name, one, value, checkout) for value in several]
    return [f"{_long(one)}={text}" for text in texts] if isinstance(one, click.Option) else texts


def _text(name: str, one: click.Parameter, value: object, checkout: Path) -> str:
    kind, text = _type(one)["type"], str(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{name} takes {kind}s, not {type(value).__name__}")
    if len(text) > MAX_TEXT or not all(c.isprintable() or c == "\n" for c in text):
        raise ValueError(f"{name} takes text of at most {MAX_TEXT} characters, all of them printable")
    if isinstance(one.type, click.Path):
        below = OUT if _is_left(one) else ""
        if (path := inside(checkout, text, below)) is None:
            where = f"{below}/ of the checkout" if below else "the checkout"
            raise PermissionError(f"{text[:200]!r} does not lie in {where}")
        return str(path)
    if text.startswith("-") and kind == "string":
        raise ValueError(f"{name} is {text[:60]!r}: a value does not begin with -, as an option does")
    return text


def inside(checkout: Path, text: str, below: str = "") -> Path | None:
    """The path, relative to the checkout; None where it leads out of it, or of `below`."""
    root = checkout.resolve()
    whole = (root / text).resolve()
    if not whole.is_relative_to(root / below) or ".git" in whole.relative_to(root).parts:
        return None
    return whole.relative_to(root)


def _long(one: click.Parameter) -> str:
    return next(opt for opt in one.opts if opt.startswith("--"))


def _is_left(one: click.Parameter) -> bool:
    """Whether it is a place that something is left at: the OutputPath of ci/commands/options.py."""
    return hasattr(one.type, "is_folder")


def _type(one: click.Parameter) -> dict[str, Any]:
    if isinstance(one, click.Option) and one.is_flag:
        return {"type": "boolean"}
    if isinstance(one.type, click.Choice):
        return {"type": "string", "enum": list(one.type.choices)}
    return {"type": {"integer": "integer", "float": "number"}.get(one.type.name.removesuffix(" range"), "string")}


def _is_several(one: click.Parameter) -> bool:
    return one.multiple or one.nargs == -1


# ---- commands that answers and errors name, as calls -----------------------------------------------------------------


def call_of(command: str, tools: Mapping[str, AgentTool]) -> ToolCall | None:
    """The call that does what `kernelgate …` says; None for what is not offered, or no command line."""
    words: list[str] = []
    with suppress(ValueError):
        words = shlex.split(command)
    for tool in sorted(tools.values(), key=lambda one: len(one.words), reverse=True):
        if tuple(words[: 1 + len(tool.words)]) == ("kernelgate", *tool.words):
            with suppress(click.UsageError):
                parser = tool.command.make_parser(click.Context(tool.command))
                found, _, _ = parser.parse_args(words[1 + len(tool.words) :])
                given: dict[str, Any] = {}
                for name, one in tool.parameters.items():
                    value = found.get(str(one.name))
                    if isinstance(value, str | bool):
                        number = {"integer": int, "number": float}.get(_type(one)["type"])
                        given[name] = number(value) if number else value
                    elif value and _is_several(one):
                        given[name] = list(value)
                return ToolCall(tool.name, given)
    return None


def next_after(error: str, code: int | None, call: ToolCall, tools: Mapping[str, AgentTool]) -> ToolCall:
    """The one thing to do after a verb that could not run: the first command that its error names and that is offered;
    else the same call without the argument, or the value, that it names; else what says whether the machine is fit."""
    named = (call_of(text, tools) for text in re.findall(r"`(kernelgate [^`]+)`", error))
    if found := next((one for one in named if one is not None), None):
        return found
    given = {name.replace("-", "_"): value for name, value in call.arguments.items()}
    for name, value in given.items():
        places = (f"--{name.replace('_', '-')}", f"'{name.upper()}'") if code == 64 else ()
        if any(text in error for text in (*places, repr(str(value)))):
            return without(tools[call.tool], given, name)
    return ToolCall("cards", {"list": True}) if code == 64 else ToolCall("doctor")


def parsed(text: str) -> Any:
    """One JSON value, or those of its lines; None where it is neither."""
    for read in (json.loads, lambda text: [json.loads(line) for line in text.splitlines()] or None):
        with suppress(ValueError):
            return read(text)
    return None


# ---- long answers ----------------------------------------------------------------------------------------------------

PAGE: Final = 2000
"""Characters of an answer that are shown at once, which together with the rest are at most 1,500 tokens."""
KEPT_ANSWERS: Final = 8


@dataclass
class AnswerPages:
    """The answers that were too long to be shown at once, the last ones, by number."""

    kept: dict[int, str] = field(default_factory=dict)
    count: int = 0

    def first(self, answer: Any) -> dict[str, Any]:
        """The answer; of a long one the first page, and the call for the next."""
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        if len(text) <= PAGE:
            return {"output" if isinstance(answer, str) else "answer": answer}
        self.count += 1
        self.kept = {**dict([*self.kept.items()][1 - KEPT_ANSWERS :]), self.count: text}
        return self.more({"answer": self.count, "page": 1})

    def more(self, given: Mapping[str, Any]) -> dict[str, Any]:
        number, page = given.get("answer"), given.get("page")
        text = self.kept.get(number, "") if isinstance(number, int) else ""
        pages = -(-len(text) // PAGE)
        if not isinstance(page, int) or not 1 <= page <= pages:
            kept = ", ".join(map(str, self.kept)) or "none"
            said = f"there is no page {page!r:.40} of answer {number!r:.40}; answers that are kept: {kept}"
            first = ToolCall("more", {"answer": max(self.kept), "page": 1}) if self.kept else None
            raise ToolRefusedError("invalid_argument", said, first or ToolCall("session_status"))
        shown = {"page": text[(page - 1) * PAGE : page * PAGE], "pages": f"{page} of {pages}"}
        further = ToolCall("more", {"answer": number, "page": page + 1})
        return {**shown, "next": asdict(further)} if page < pages else shown
