"""A session without a person: a scripted agent speaks MCP, follows `session next`, and tries three edits."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from kernelgate.ci.lab import folder, log
from tests import miniature

BEGIN = "double factor) {\n"
CHECK = "".join(f'  STD_TORCH_CHECK({one}.is_contiguous(), "{one}: expected without gaps");\n' for one in ("x", "out"))
FAST = miniature.SCALE.replace(BEGIN, BEGIN + CHECK)
LOOP = "    static_cast<float*>(out.mutable_data_ptr())[i]"
SLOW = FAST.replace(LOOP, f"    for (volatile int k = 0; k < 40; k = k + 1) {{}}\n{LOOP}")
CARD = miniature.SCALE_CARD.replace("    cases = [dict(N=64", "    cpu_cases = cases = [dict(N=65536")
EDITS = (
    ("leave out the idle loop", "each element waits for it", FAST, "keep"),
    ("scale twice", "to be wrong", FAST.replace("factor *", "factor * factor *"), "revert"),
    ("wait again", "to be slower", SLOW, "revert"),
)
"""What is tried, why, the source, and what must come of it."""
STEPS = 40
AGAIN = 3
"""How often the agent tries an edit again of which a busy machine could not tell."""


class ScriptedAgent:
    """Follows what comes next; of its own it has nothing but edits."""

    def __init__(self, client: Client, source: Path) -> None:
        self.client, self.source = client, source
        self.edits = list(EDITS)
        self.again = AGAIN
        self.tried: list[tuple[str, str]] = []
        self.closed = False

    async def call(self, name: str, /, **given: Any) -> dict[str, Any]:
        result = await self.client.call_tool(name, given)
        assert isinstance(result.structured_content, dict)
        assert not result.is_error, (name, result.structured_content)
        return result.structured_content

    async def work(self) -> None:
        await self.call("session_new", objective="faster", card="scale", name="loop")
        for _ in range(STEPS):
            if self.closed:
                return
            said = await self.call("session_next")
            await self.step(shlex.split(said["answer"]["next"]["command"])[2:])
        raise AssertionError("the session did not come to its end")

    async def step(self, words: list[str]) -> None:
        match words[0]:
            case "gate":
                done = await self.call("session_gate", gate=words[1])
                if done["exit_code"] == 1:
                    await self.call("session_gate", gate=words[1], skip="the test goes on")
            case "try" if self.edits:
                what, why, text, _ = edit = self.edits.pop(0)
                self.source.write_text(text, encoding="utf-8")
                done = await self.call("session_try", what=what, why=why)
                if any(one["status"] == "undecided" for one in done["answer"]["logged"][0]["outcomes"]) and self.again:
                    self.again -= 1
                    self.edits.insert(0, edit)
                else:
                    self.tried.append((what, "keep" if done["exit_code"] == 0 else "revert"))
            case "keep" | "revert":
                await self.call(f"session_{words[0]}")
            case _:
                await self.call("session_close", why="done")
                self.closed = True


@pytest.mark.nightly
def test_an_agent_follows_a_session_to_its_end(tmp_path: Path) -> None:
    repo = miniature.write(tmp_path / "repo", {"csrc/scale.cpp": SLOW, ".ci/kernels/scale.py": CARD})
    (repo / ".gitignore").write_text("out/\n", encoding="utf-8")
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "begin"]):
        miniature.git(repo, *words)

    async def run() -> ScriptedAgent:
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        variables = {**kept, "KERNELGATE_CACHE": str(tmp_path / "cache")}
        program = ["-m", "kernelgate.ci.commands.cli", "mcp"]
        parameters = StdioServerParameters(command=sys.executable, args=program, cwd=repo, env=variables)
        async with Client(parameters) as client:
            agent = ScriptedAgent(client, repo / "csrc/scale.cpp")
            await agent.work()
            return agent

    agent = anyio.run(run)

    assert agent.tried == [(what, end) for what, _, _, end in EDITS]
    events = folder.named(repo, "loop").events
    tries = [one for one in events if isinstance(one, log.TriedChange)]
    told = [one for one in tries if not any(outcome.status == "undecided" for outcome in one.outcomes)]
    assert [one.failed for one in told] == [None, "correctness", None]
    assert isinstance(events[-1], log.Closed)
    assert (repo / "csrc/scale.cpp").read_text(encoding="utf-8") == FAST
