"""Fills the section of statistical results in a pull request's description, where it has the marks for it."""

from __future__ import annotations

from kernelgate.ci.github import results_block
from kernelgate.ci.github.client import Bot, until_done
from kernelgate.ci.github.stamp import Posted, Stamp, outdated


def put_results(bot: Bot, number: int, text: str, stamp: Stamp) -> Posted:
    """The block in the description holds `text`, unless its author wrote there, or the result is of an older commit.

    Read anew right before each write, since authors edit descriptions; and afterwards, so that a write that was lost
    is repeated. What is there already is not written again: an edit may start workflows, which must come to an end.
    """
    outcome = "unchanged"

    def step() -> Posted | None:
        nonlocal outcome
        pull = bot.repository.get_pull(number)
        if (late := outdated(pull, stamp)) is not None:
            return late
        body = pull.body or ""
        made = results_block.filled(body, text)
        if made is None:
            return Posted("left alone: it has no place for results, or somebody else's words in it", left=True)
        if made == body:
            return Posted(outcome)
        outcome = "results filled in"
        pull.edit(body=made)
        return None

    return until_done("description", step, bot)
