"""Commands that come by another way than a maintainer's own comment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.client import Bot, connect
from kernelgate.ci.github.command import answer
from kernelgate.ci.policy.policy import Policy
from tests.ci.desk import Desk
from tests.ci.report_examples import BASE_SHA, HEAD_SHA


def commanded(desk: Desk, folder: Path, user: dict[str, Any], **comment: Any) -> dict[str, str]:
    """The outputs of a command by this user, on a pull request that was pushed to long before."""
    desk.github.open_pull(number=1, head_sha=HEAD_SHA, base_sha=BASE_SHA, locked=comment.pop("locked", False))
    desk.github.collaborators["maintainer"] = "write"
    said = desk.github.comment(1, "/kernelgate bench", author="maintainer")
    written = {"id": said["id"], "body": said["body"], "created_at": "2030-01-01T00:00:00Z", "user": user} | comment
    event = {"action": "created", "comment": written, "issue": {"number": 1, "pull_request": {"url": "x"}}}
    (folder / "event.json").write_text(json.dumps(event), "utf-8")
    step = Step({**desk.bot.step.environment, "GITHUB_EVENT_PATH": str(folder / "event.json")})
    bot: Bot = connect(step, sleep=desk.slept.append, pause_s=0)
    answer(step, bot, Policy().measure)
    bot.repository.requester.close()
    return desk.outputs


@pytest.mark.parametrize(
    ("user", "comment"),
    [
        ({"type": "Bot", "login": "helper[bot]"}, {}),
        ({"type": "User", "login": "maintainer"}, {"performed_via_github_app": {"slug": "helper"}}),
    ],
    ids=["as itself", "in a maintainer's name"],
)
def test_an_app_that_acts_for_a_maintainer_commands_nothing(
    desk: Desk, tmp_path: Path, user: dict[str, Any], comment: dict[str, Any]
) -> None:
    """An App that has a person's token writes in that person's name, perhaps what it read somewhere."""
    assert commanded(desk, tmp_path, user, **comment) == {"run": "false"}
    assert desk.github.reactions == []


def test_a_locked_conversation_is_commanded_by_those_who_may_write(desk: Desk, tmp_path: Path) -> None:
    """GitHub lets nobody else comment there."""
    outputs = commanded(desk, tmp_path, {"type": "User", "login": "maintainer"}, locked=True)
    assert (outputs["run"], outputs["head_sha"]) == ("true", HEAD_SHA)
    assert "does `bench`" in desk.summary
