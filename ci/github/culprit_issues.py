"""One issue for each commit that made a case slower, as `kernelgate history culprits` tells of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from kernelgate.bench.core.errors import UsageError, faults
from kernelgate.bench.record import Model
from kernelgate.ci.github import culprit_words, upsert
from kernelgate.ci.github.client import Bot, patiently
from kernelgate.ci.github.culprit_words import KnownCulprit
from kernelgate.ci.github.upsert import IssueState, WantedIssue
from kernelgate.ci.policy.policy import Policy

LABEL = "kernelgate: culprit"
FILE = "culprits.json"


class CulpritFile(Model):
    """What `kernelgate history culprits --json` prints."""

    schema_: Literal["kernelgate.culprits/1"] = Field(alias="schema")
    culprits: tuple[KnownCulprit, ...]
    searches: tuple[dict[str, Any], ...] = ()


def read(folder: Path) -> tuple[KnownCulprit, ...]:
    """The culprits in a folder of `kernelgate history culprits -o`. Raises UsageError."""
    path = folder / FILE
    try:
        return TypeAdapter(CulpritFile).validate_json(path.read_bytes()).culprits
    except ValidationError as error:
        raise UsageError(f"{path} is not what `kernelgate history culprits` writes: {faults(error)}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def put(bot: Bot, folder: Path, rules: Policy) -> dict[str, str]:
    """Each culprit of this repository has one issue, which is open while a case of it is slower; what was done, by
    commit. Nothing is begun for what is over already, and nobody is assigned."""
    own = bot.step.repository or ""
    mine = [one for one in read(folder) if one.repository in ("", own)]
    done = {one.commit: _put(bot, one, culprit_words.comparison(one, folder, rules)) for one in mine}
    for commit, what in done.items():
        bot.step.log(f"{commit[:12]}: {what}")
    return done


def last_line(commit: str, state: IssueState) -> str:
    return upsert.issue_line(_subject(commit), state)


def _subject(commit: str) -> str:
    return f"culprit commit={commit}"


def _put(bot: Bot, culprit: KnownCulprit, comparison: str) -> str:
    pull = patiently("pull request", lambda: _pull_of(bot, culprit.commit), bot)
    wanted = WantedIssue(
        LABEL,
        _subject(culprit.commit),
        culprit_words.title(culprit),
        culprit_words.body(culprit, pull, comparison, bot.step),
        "open" if culprit.is_slower else "closed",
        _reason(culprit),
        culprit_words.news(culprit, bot.step),
    )
    return upsert.put_issue(bot, wanted).outcome


def _reason(culprit: KnownCulprit) -> str:
    if culprit.is_slower:
        return "reopened"
    return "completed" if any(case.state == "fixed" for case in culprit.cases) else "not_planned"


def _pull_of(bot: Bot, commit: str) -> int | None:
    """The merged pull request that brought the commit."""
    # PyGithub would ask for the commit first.
    _, pulls = bot.repository.requester.requestJsonAndCheck("GET", f"{bot.repository.url}/commits/{commit}/pulls")
    merged = [one["number"] for one in pulls if one.get("merged_at")]
    return merged[0] if merged else None
