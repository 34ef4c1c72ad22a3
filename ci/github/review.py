"""`kernelgate template`: a description from a file or from the event, and what it lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernelgate.bench.core.errors import UsageError
from kernelgate.ci.document import escape
from kernelgate.ci.github import description
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.description import Description
from kernelgate.ci.policy.pull_request_rules import Template


def review(step: Step, rules: Template, body: Path | None) -> int:
    """Says what is missing and what is claimed. 1 where something blocks, else 0."""
    described = describe(step, rules, body)
    text = description.as_text(described)
    for line in text.splitlines():
        step.log(line)
    # The text quotes the author, so it goes into the summary as a block that it cannot end.
    step.summary("### The pull request's description\n\n" + escape.fence(tuple(text.splitlines()), "text"))
    return int(described.blocks)


def describe(step: Step, rules: Template, body: Path | None) -> Description:
    """What stands in the file, else in the event's pull request. Raises UsageError for a file that cannot be read."""
    return _of_file(body, rules) if body else _of_event(step, rules)


def _of_file(path: Path, rules: Template) -> Description:
    try:
        return description.describe(path.read_text(encoding="utf-8", errors="replace"), rules)
    except OSError as error:
        raise UsageError(f"{path}: the description cannot be read: {error.strerror}") from None


def _of_event(step: Step, rules: Template) -> Description:
    pull = step.event().get("pull_request")
    if not isinstance(pull, dict):
        return Description((), (), (), "the event is of no pull request")
    user: Any = pull.get("user") or {}
    return description.describe(pull.get("body"), rules, _changed(step, pull), by_bot=user.get("type") == "Bot")


def _changed(step: Step, pull: dict[str, Any]) -> list[str] | None:
    """The files of the pull request; None where they are not known, and then it counts as a change to a kernel."""
    if step.token is None:
        return None
    from kernelgate.ci.github import client

    bot = client.connect(step)

    def look() -> list[str] | None:
        whole = bot.repository.get_pull(int(pull["number"]))
        return client.changed_names(whole, list(whole.get_files()))

    return client.patiently("changed files", look, bot)
