"""What an agent asks for becomes the verb's words, and nothing that it may not ask for does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from kernelgate.ci.commands import cli
from kernelgate.ci.lab import agents as tools
from kernelgate.ci.lab.agents import ToolRefusedError
from kernelgate.ci.lab.agents_server import AgentsServer, DeviceBudget

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
    assert not {"history_next", "history_decide", "session_page", "session_review"} & TOOLS.keys()
    assert {name for name, tool in TOOLS.items() if tool.measures} >= {"bench", "session_try", "session_gate"}
    offered = {str(one.name) for tool in TOOLS.values() for one in tool.parameters.values()}
    assert not offered & {"policy_file", "preset", "token", "post", "library", "base_library", "head_library", "hours"}


def test_the_list_of_tools_is_short() -> None:
    """At most 5,000 tokens: 4.2 characters each, of which o200k_base takes 4.3 for this list."""
    text = json.dumps(listed(), ensure_ascii=False, separators=(",", ":"))
    assert len(text) / 4.2 <= 5000


def test_what_only_reads_says_so_and_what_takes_back_warns() -> None:
    hints = {one["name"]: one["annotations"] for one in listed()}
    assert all(one["openWorldHint"] is False for one in hints.values())
    assert {"compare", "session_status", "session_next", "more"} <= {
        n for n, one in hints.items() if one["readOnlyHint"]
    }
    assert not any(hints[name]["readOnlyHint"] for name in ("session_keep", "bench", "build", "session_gate", "try"))
    assert [name for name, one in hints.items() if one.get("destructiveHint")] == ["session_revert"]


def test_words_become_options_and_places() -> None:
    fuzz = words("fuzz", case=["S=4", "S=65"], seed=3)
    assert fuzz == ["fuzz", "--seed=3", "--case=S=4", "--case=S=65", "--json"]
    assert words("build", **{"time-limit": 3}) == words("build", time_limit=3) == ["build", "--time-limit=3", "--json"]
    assert words("decide", speedup=0.5, milliseconds=1.0) == ["decide", "--json", "--", "0.5", "1.0"]
    assert words("doctor", gpu=True) == ["doctor", "--gpu", "--json"]
    assert words("doctor", gpu=False) == ["doctor", "--json"]


@pytest.mark.parametrize(
    ("name", "given", "code", "said", "next_"),
    [
        ("compare", {"records": ["/etc/passwd"]}, "not_allowed", "does not lie in the checkout", ["<records>"]),
        ("compare", {"records": ["link/run.json"]}, "not_allowed", "does not lie in the checkout", ["<records>"]),
        ("bench", {"policy": "x", "seed": 1}, "unknown_argument", "no argument 'policy'", {"seed": 1}),
        ("session_close", {"learned": "much"}, "unknown_argument", "no argument 'learned'", {"learnt": "much"}),
        ("bench", {"output": "csrc/kernel.cu"}, "not_allowed", r"does not lie in out/ of the checkout", {}),
        ("bench", {"base": "--policy=/etc/passwd"}, "invalid_argument", "does not begin with -", {}),
        ("bench", {"case": "S=4"}, "invalid_argument", "takes a list", {}),
        ("bench", {"case": ["a\x00b"]}, "invalid_argument", "all of them printable", {}),
        ("bench", {"case": ["x" * 5000]}, "invalid_argument", "at most 4000 characters", {}),
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


@pytest.mark.parametrize(
    ("command", "tool", "arguments"),
    [
        ('kernelgate session try "WHAT I CHANGE" "WHY" --action x', "session_try", ["WHAT I CHANGE", "WHY", "x"]),
        ("kernelgate bench --case a --case b --rounds 3 --same", "bench", [["a", "b"], 3, True]),
        ("kernelgate compare out/run.json", "compare", [["out/run.json"]]),
    ],
)
def test_a_command_that_is_named_is_a_call(command: str, tool: str, arguments: list[Any]) -> None:
    call = tools.call_of(command, TOOLS)
    assert call is not None
    assert call.tool == tool
    assert sorted(map(str, call.arguments.values())) == sorted(map(str, arguments))
    assert tools.command_line(TOOLS[tool], call.arguments, Path())


@pytest.mark.parametrize("command", ["kernelgate mcp", "rm -rf .", "kernelgate bench --nonsense", 'kernelgate "', ""])
def test_what_is_no_tool_is_no_call(command: str) -> None:
    assert tools.call_of(command, TOOLS) is None


def test_a_path_that_looks_like_an_option_stays_a_path(tmp_path: Path) -> None:
    made = words("compare", tmp_path, records=["--policy=/etc/passwd"])
    assert made == ["compare", "--json", "--", "--policy=/etc/passwd"]


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
