"""A pull request that brings files: opened once, and refreshed in place. Each step may be repeated.

The branch is the bot's own; where no pull request is open for it, it starts anew.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from github import UnknownObjectException

from kernelgate.ci.github.client import Bot, default_branch, until_done


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
    """There is one open pull request for the branch, with these files, title and body; its number."""
    default = default_branch(bot)
    owner = bot.repository.full_name.split("/")[0]
    begun = False

    def step() -> int | None:
        nonlocal begun
        try:
            ref = bot.repository.get_git_ref(f"heads/{new.branch}")
            # Read first: the address to change it at is only known from GitHub's answer.
            there = ref.object.sha
        except UnknownObjectException:
            bot.repository.create_git_ref(f"refs/heads/{new.branch}", new.commit)
            return None
        pulls = bot.repository.get_pulls(state="open", head=f"{owner}:{new.branch}", base=default)
        pull = next((pull for pull in pulls if pull.head.ref == new.branch), None)
        known = {path: file_sha(bot, path, new.branch) for path, _ in new.files}
        wrong = [(path, content) for path, content in new.files if known[path] != blob_sha(content)]
        # A run that stopped before its pull request goes on where the branch has these very files.
        begun = begun or pull is not None or not wrong or there == new.commit
        if not begun:
            ref.edit(new.commit, force=True)
        elif wrong:
            (path, content), message = wrong[0], f"{new.title}\n\n{new.because}"
            if (sha := known[path]) is None:
                bot.repository.create_file(path, message, content, branch=new.branch)
            else:
                bot.repository.update_file(path, message, content, sha, branch=new.branch)
        elif pull is None:
            bot.repository.create_pull(default, new.branch, title=new.title, body=new.body)
        elif (pull.title, (pull.body or "").replace("\r\n", "\n").strip()) != (new.title, new.body.strip()):
            pull.edit(title=new.title, body=new.body)
        else:
            return int(pull.number)
        return None

    number = until_done("pull request", step, bot)
    bot.step.log(f"pull request: {number}")
    return number


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
