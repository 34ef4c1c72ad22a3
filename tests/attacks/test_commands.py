"""Commands that come by another way than a maintainer's own comment."""

from __future__ import annotations

from typing import Any

from tests.ci.desk import Desk
from tests.ci.report_examples import BASE_SHA, HEAD_SHA


def commanded(desk: Desk, locked: bool = False, **comment: Any) -> dict[str, str]:
    """The outputs of a maintainer's command, on a pull request that was pushed to long before."""
    desk.github.open_pull(number=1, head_sha=HEAD_SHA, base_sha=BASE_SHA, locked=locked)
    desk.github.collaborators["maintainer"] = "write"
    return desk.asked(login="maintainer", **comment)


def test_an_app_that_acts_for_a_maintainer_commands_nothing(desk: Desk) -> None:
    """As itself, or in a person's name, whose token it has, and perhaps what it read somewhere."""
    for comment in (
        {"user": {"type": "Bot", "login": "helper[bot]"}},
        {"performed_via_github_app": {"slug": "helper"}},
    ):
        assert commanded(desk, **comment) == {"run": "false"}
        assert desk.github.reactions == []


def test_a_locked_conversation_is_commanded_by_those_who_may_write(desk: Desk) -> None:
    """GitHub lets nobody else comment there."""
    outputs = commanded(desk, locked=True)
    assert (outputs["run"], outputs["head_sha"]) == ("true", HEAD_SHA)
    assert "does `bench`" in desk.summary
