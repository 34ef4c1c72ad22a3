"""The labels that show the verdict in a list of pull requests."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote

from github import GithubException
from github.PullRequest import PullRequest

from kernelgate.ci.github.client import Bot, until_done
from kernelgate.ci.github.stamp import Posted, Stamp, outdated
from kernelgate.ci.judge.gate import Label

LABELS = {
    Label.IMPROVED: ("0e8a16", "kernelgate measured this change to be faster"),
    Label.REGRESSED: ("b60205", "kernelgate measured this change to be slower"),
    Label.UNCHANGED: ("c5def5", "kernelgate measured this change to make no difference"),
    Label.ACCEPTED: ("fbca04", "Somebody accepted that this commit is slower"),
}
VERDICTS = (Label.IMPROVED, Label.REGRESSED, Label.UNCHANGED)


AUTOMATIC = "ededed"
"""The colour of a label that GitHub made because somebody used it."""


def put_labels(
    bot: Bot, number: int, labels: Collection[Label], stamp: Stamp, among: Collection[Label] = tuple(Label)
) -> Posted:
    """Of the labels `among` ours the pull request carries `labels` alone."""
    done: list[str] = []

    def step() -> Posted | None:
        pull = bot.repository.get_pull(number)
        if (late := outdated(pull, stamp)) is not None:
            return late
        there = {found.name: found.color for found in pull.labels}
        others = [other for other in among if other not in labels]
        stale = next((other for other in others if other in there), None)
        if stale is not None:
            done.append(f"removed {stale.value!r}")
            _remove(bot, pull, stale)
            return None
        new = [label for label in among if label in labels and label not in there]
        if new:
            done.extend(f"added {label.value!r}" for label in new)
            there = _add(bot, pull, new)
        for label in labels:
            if there.get(label) == AUTOMATIC:
                _explain(bot, label)
        if any(other in there for other in others):
            return None
        return Posted(", ".join(dict.fromkeys(done)) or "unchanged", comments=pull.comments)

    return until_done("label", step, bot)


def _remove(bot: Bot, pull: PullRequest, label: Label) -> None:
    try:
        pull.remove_from_labels(label.value)
    except GithubException as error:
        if error.status != 404:
            raise
        bot.step.log("label: it was removed in between; looking again")


def _add(bot: Bot, pull: PullRequest, labels: Collection[Label]) -> dict[str, str]:
    """Adds the labels; the colour of every label that the pull request has then."""
    # PyGithub sends a bare list here, which GitHub's description does not allow.
    address = f"{pull.issue_url}/labels"
    _, there = bot.repository.requester.requestJsonAndCheck(
        "POST", address, input={"labels": [label.value for label in labels]}
    )
    return {found["name"]: found["color"] for found in there}


def _explain(bot: Bot, label: Label) -> None:
    """Gives a label that GitHub had to make its colour and meaning."""
    colour, meaning = LABELS[label]
    address = f"{bot.repository.url}/labels/{quote(label.value)}"
    bot.repository.requester.requestJsonAndCheck("PATCH", address, input={"color": colour, "description": meaning})
