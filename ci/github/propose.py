"""A pull request that brings files: opened once, and refreshed in place. Each step may be repeated.

The branch is the bot's own; where no pull request is open for it, it starts anew.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial

from github import UnknownObjectException

from kernelgate.ci.github.client import Bot, default_branch, until_done
from kernelgate.ci.github.upsert import Posted


@dataclass(frozen=True)
class Offer:
    branch: str
    files: tuple[tuple[str, bytes], ...]
    title: str
    body: str
    commit: str
    """The commit of the default branch that was measured, or is changed: the branch starts there."""
    because: str


def put(bot: Bot, new: Offer) -> int:
    """There is one open pull request for the branch, with this file, title and body; its number."""
    default = default_branch(bot)
    until_done("branch", lambda: _branch_step(bot, new, default), bot)
    for path, content in new.files:
        posted = until_done("file", partial(_file_step, bot, new, path, content), bot)
        bot.step.log(f"{path}: {posted.outcome}")
    number = until_done("pull request", lambda: _pull_step(bot, new, default), bot)
    bot.step.log(f"pull request: {number}")
    return number


def _open_pull(bot: Bot, new: Offer, default: str) -> int | None:
    owner = bot.repository.full_name.split("/")[0]
    pulls = bot.repository.get_pulls(state="open", head=f"{owner}:{new.branch}", base=default)
    return next((pull.number for pull in pulls if pull.head.ref == new.branch), None)


def _branch_step(bot: Bot, new: Offer, default: str) -> Posted | None:
    """The branch exists; where no pull request is open for it, it starts anew from the commit that was measured."""
    name = f"heads/{new.branch}"
    try:
        ref = bot.repository.get_git_ref(name)
        # Read first: the address to change it at is only known from GitHub's answer.
        there = ref.object.sha
    except UnknownObjectException:
        bot.repository.create_git_ref(f"refs/{name}", new.commit)
        return None
    # A run that stopped before its pull request goes on where the branch has these very files.
    if (
        there == new.commit
        or _open_pull(bot, new, default) is not None
        or all(file_sha(bot, path, new.branch) == blob_sha(content) for path, content in new.files)
    ):
        return Posted("there")
    ref.edit(new.commit, force=True)
    return None


def _file_step(bot: Bot, new: Offer, path: str, content: bytes) -> Posted | None:
    message = f"{new.title}\n\n{new.because}"
    known = file_sha(bot, path, new.branch)
    if known == blob_sha(content):
        return Posted("there")
    if known is None:
        bot.repository.create_file(path, message, content, branch=new.branch)
    else:
        bot.repository.update_file(path, message, content, known, branch=new.branch)
    return None


def _pull_step(bot: Bot, new: Offer, default: str) -> int | None:
    number = _open_pull(bot, new, default)
    if number is None:
        bot.repository.create_pull(default, new.branch, title=new.title, body=new.body)
        return None
    pull = bot.repository.get_pull(number)
    if (pull.title, (pull.body or "").replace("\r\n", "\n").strip()) == (new.title, new.body.strip()):
        return number
    pull.edit(title=new.title, body=new.body)
    return None


def file_sha(bot: Bot, path: str, ref: str) -> str | None:
    """Git's name for what a branch or a commit has there; None where it has no such file, or there is no such ref."""
    try:
        found = bot.repository.get_contents(path, ref=ref)
    except UnknownObjectException:
        return None
    return None if isinstance(found, list) else found.sha


def blob_sha(content: bytes) -> str:
    """Git's name for the content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
