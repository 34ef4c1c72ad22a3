"""Where the bot sits in a test."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelgate.ci.github import command
from kernelgate.ci.github.client import Bot
from kernelgate.ci.policy.policy import Measure
from tests.fakes.github_server import FakeGitHub


@dataclass
class Desk:
    """The bot at its desk: what a step has around it, and how long it would have waited."""

    github: FakeGitHub
    bot: Bot
    outputs_file: Path
    summary_file: Path
    slept: list[float] = field(default_factory=list)

    @property
    def outputs(self) -> dict[str, str]:
        text = self.outputs_file.read_text(encoding="utf-8") if self.outputs_file.exists() else ""
        return dict(line.split("=", 1) for line in text.splitlines())

    @property
    def summary(self) -> str:
        return self.summary_file.read_text(encoding="utf-8") if self.summary_file.exists() else ""

    @property
    def replies(self) -> list[str]:
        own = [one for one in self.github.comments.values() if one["user"]["login"] == self.github.login]
        return [one["body"] for one in own]

    def told(self, payload: object) -> None:
        path = self.summary_file.with_name("event.json")
        path.write_text(json.dumps(payload), encoding="utf-8")
        self.bot.step.environment["GITHUB_EVENT_PATH"] = str(path)  # type: ignore[index]

    def commented(self, body: str, login: str = "ada", number: int = 1, event: Any = None, **comment: Any) -> int:
        """Somebody comments on the pull request of this number, or on the issue if there is none; the comment's id."""
        placed = self.github.comment(number, body, author=login)
        issue = {"number": number} | ({"pull_request": {"url": "x"}} if number in self.github.pulls else {})
        user = {"login": login, "type": "User"}
        shown = {"id": placed["id"], "body": body, "created_at": "2026-11-20T10:00:00Z", "user": user} | comment
        self.told({"action": "created", "issue": issue, "comment": shown} | (event or {}))
        return int(placed["id"])

    def asked(self, body: str = "/kernelgate bench", rules: Measure | None = None, **comment: Any) -> dict[str, str]:
        """The bot reads that comment as a command; what it hands on to later steps."""
        self.commented(body, **comment)
        self.outputs_file.unlink(missing_ok=True)
        command.answer(self.bot.step, self.bot, rules or Measure())
        return self.outputs
