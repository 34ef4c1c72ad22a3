"""The label that shows the verdict in a list of pull requests."""

from __future__ import annotations

from github import GithubException

from kernelgate.ci.github.client import Bot, until_done
from kernelgate.ci.github.stamp import Posted, Stamp, outdated
from kernelgate.ci.judge.gate import Label

LABELS = {
    Label.IMPROVED: ("0e8a16", "kernelgate measured this change to be faster"),
    Label.REGRESSED: ("b60205", "kernelgate measured this change to be slower"),
    Label.UNCHANGED: ("c5def5", "kernelgate measured this change to make no difference"),
}


def put_label(bot: Bot, number: int, label: Label | None, stamp: Stamp) -> Posted:
    """Of the three labels the pull request carries `label` alone; None: none of them."""
    done: list[str] = []

    def step() -> Posted | None:
        pull = bot.repository.get_pull(number)
        if (why := outdated(pull, stamp)) is not None:
            return Posted(f"left alone: {why}", left=True)
        there = {found.name for found in pull.get_labels()}
        stale = next((other for other in Label if other in there and other is not label), None)
        try:
            if stale is not None:
                pull.remove_from_labels(stale.value)
                done.append(f"removed {stale.value!r}")
            elif label is not None and label not in there:
                _known_label(bot, label)
                # PyGithub sends a bare list here, which GitHub's description does not allow.
                address = f"{pull.issue_url}/labels"
                bot.repository.requester.requestJsonAndCheck("POST", address, input={"labels": [label.value]})
                done.append(f"added {label.value!r}")
            else:
                return Posted(", ".join(dict.fromkeys(done)) or "unchanged")
        except GithubException as error:
            if stale is None or error.status != 404:
                raise
            bot.step.log("label: it was removed in between; looking again")
        return None

    return until_done("label", step, bot)


def _known_label(bot: Bot, label: Label) -> None:
    """The repository has the label, in a colour that fits."""
    colour, meaning = LABELS[label]
    try:
        bot.repository.create_label(label.value, colour, meaning)
    except GithubException as error:
        # 422: it is there already.
        if error.status != 422:
            raise
