"""GitHub's own workflow parser and expression evaluator, which are written for Node, asked from Python."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.workflows import node

HERE = Path(__file__).parent


class Language:
    """A Node process that answers one question a line."""

    def __enter__(self) -> Self:
        running = node.command()
        assert running, "Node is missing; `make test` brings it"
        assert (HERE / "node_modules").is_dir(), "GitHub's workflow parser is missing; `make test` brings it"
        self._process = subprocess.Popen(
            [*running, "language.mjs"], cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate(timeout=30)

    def workflow_errors(self, name: str, content: str, called: Mapping[str, str] | None = None) -> list[str]:
        """What GitHub has against a workflow; `called` are the reusable workflows by path."""
        return self._ask("workflowErrors", file={"name": name, "content": content}, files=dict(called or {}))

    def action_errors(self, name: str, content: str) -> list[str]:
        return self._ask("actionErrors", file={"name": name, "content": content})

    def expanded(self, value: Any, contexts: Mapping[str, Any]) -> Any:
        """`value` with every `${{ }}` in its texts evaluated."""
        if isinstance(value, dict):
            return {key: self.expanded(each, contexts) for key, each in value.items()}
        if not isinstance(value, str) or "${{" not in value:
            return value
        return self._ask("expanded", text=value, contexts=contexts)

    def holds(self, condition: str | None, contexts: Mapping[str, Any], status: Mapping[str, bool]) -> bool:
        """Whether an `if:` holds; None, an absent one, holds where nothing failed."""
        return self._ask("holds", text=condition or "success()", contexts=contexts, status=status)

    def _ask(self, question: str, **rest: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"question": question, **rest}) + "\n")
        self._process.stdin.flush()
        reply = json.loads(self._process.stdout.readline())
        assert "error" not in reply, reply["error"]
        return reply["answer"]
