"""What an agent asks for becomes the verb's words, and nothing that it may not ask for does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from kernelgate.ci.commands import cli
from kernelgate.ci.lab import agents as tools
from kernelgate.ci.lab.agents import DeviceBudget, ToolRefusedError

TOOLS = {tool.name: tool for tool in tools.offered(cli.cli)}


def words(name: str, checkout: Path = Path(), **given: Any) -> list[str]:
    return tools.command_line(TOOLS[name], given, checkout)


def test_the_tools_are_verbs_with_json() -> None:
    assert {"doctor", "build", "fuzz", "bench", "compare", "profile", "analyze", "patterns"} <= TOOLS.keys()
    assert not {"report", "pr", "fetch", "command", "accept", "mcp"} & {tool.words[0] for tool in TOOLS.values()}
    offered = {name for tool in TOOLS.values() for name in tool.parameters}
    assert not offered & {"policy_file", "preset", "token", "post", "library", "base_library", "head_library", "hours"}


def test_words_become_options_and_places() -> None:
    fuzz = words("fuzz", case_ids=["S=4", "S=65"], seed=3)
    assert fuzz == ["fuzz", "--seed=3", "--case=S=4", "--case=S=65", "--json"]
    assert words("decide", speedup=0.5, milliseconds=1.0) == ["decide", "--json", "--", "0.5", "1.0"]
    assert words("doctor", gpu=True) == ["doctor", "--gpu", "--json"]
    assert words("doctor", gpu=False) == ["doctor", "--json"]


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("compare", {"records": ["/etc/passwd"]}, "does not lie in the checkout"),
        ("compare", {"records": ["link/run.json"]}, "does not lie in the checkout"),
        ("compare", {"records": [".git/config"]}, "does not lie in the checkout"),
        ("compare", {"records": ["--policy=/etc/passwd"], "policy_file": "x"}, "takes no 'policy_file'"),
        ("bench", {"output": "csrc/kernel.cu"}, r"does not lie in out/ of the checkout"),
        ("profile", {"run": ".ci/baseline_l4.json"}, r"does not lie in out/ of the checkout"),
        ("bench", {"base": "--policy=/etc/passwd"}, "does not begin with -"),
        ("bench", {"case_ids": "S=4"}, "takes a list"),
        ("bench", {"case_ids": ["a\x00b"]}, "all of them printable"),
        ("bench", {"case_ids": ["x" * 5000]}, "at most 4000 characters"),
        ("bench", {"alone": "yes"}, "is true or false"),
        ("bench", {"head_library": "x"}, "takes no 'head_library'"),
        ("compare", {}, "needs 'records'"),
    ],
)
def test_what_is_not_allowed_is_refused(name: str, given: dict[str, Any], said: str, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "link").symlink_to(tmp_path)
    with pytest.raises(ToolRefusedError, match=said):
        tools.command_line(TOOLS[name], given, checkout)


def test_a_path_that_looks_like_an_option_stays_a_path(tmp_path: Path) -> None:
    made = words("compare", tmp_path, records=["--policy=/etc/passwd"])
    assert made == ["compare", "--json", "--", "--policy=/etc/passwd"]
    command = cli.cli.get_command(click.Context(cli.cli), "compare")
    assert command is not None
    context = command.make_context("compare", made[1:])
    assert (context.params["records"], context.params["policy_file"]) == ((Path("--policy=/etc/passwd"),), None)


def test_a_group_offers_each_of_its_verbs_but_those_for_people() -> None:
    session = click.Group("session", commands={name: click.Command(name) for name in ("new", "try", "page", "review")})
    made = tools.offered(click.Group("kernelgate", commands={"session": session}))
    assert [(tool.name, tool.measures) for tool in made] == [("session_new", False), ("session_try", True)]


def test_a_budget_is_of_the_server_and_of_each_session() -> None:
    budget = DeviceBudget(gpu_seconds=100, session_gpu_seconds=60, wall_s=50)
    assert budget.limit_s("a") == 50
    budget.spent["a"] += 45
    assert budget.limit_s("a") == 15
    assert budget.limit_s("b") == 50
    budget.spent["a"] += 20
    assert budget.left_s("b") == 35
    with pytest.raises(ToolRefusedError, match=r"65 of 100 GPU-seconds are spent, 65 of 60 in this session"):
        budget.limit_s("a")
