"""A session's report and questions for experts: an issue of its own, or a comment on a pull request."""

from __future__ import annotations

from functools import partial

from kernelgate.bench.core.errors import UsageError
from kernelgate.ci.document import escape
from kernelgate.ci.github import upsert
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.client import Bot, GitHubError, as_its_owner, connect, patiently
from kernelgate.ci.github.propose import blob_sha, file_sha
from kernelgate.ci.github.upsert import WantedIssue
from kernelgate.ci.lab.report import SessionForReview

LABEL = "kernelgate: session"


def post(step: Step, session: SessionForReview, pull_request: int | None) -> int | None:
    """Submits with the token of the environment, in the name of whom it belongs to. Raises UsageError without one."""
    if not step.token or not step.repository:
        lacks = "GITHUB_REPOSITORY, such as owner/name," if step.token else "GITHUB_TOKEN"
        raise UsageError(f"{lacks} is not set: set it to submit {session.name}, or print the report with --dry-run")
    return submit(as_its_owner(connect(step)), session, pull_request)


def submit(bot: Bot, session: SessionForReview, pull_request: int | None) -> int | None:
    """There is one issue of the bot for the session, open, with this report: its number; or one comment on the pull
    request.

    Raises GitHubError, also where a person closed the issue.
    """
    body = f"{session.report}\n{_files(bot, session)}"
    subject = f"session name={session.name}"
    if pull_request is not None:
        upsert.put_answer(bot, pull_request, body, f"<!-- kernelgate-{subject} -->")
        return None
    title = f"Review of the session {session.name}: {session.objective}"
    posted = upsert.put_issue(bot, WantedIssue(LABEL, subject, title, body))
    if posted.left:
        raise GitHubError(f"{posted.outcome}; open it again to submit {session.name} once more")
    bot.step.log(f"{posted.outcome} in {bot.step.repository}")
    return posted.issue


def _files(bot: Bot, session: SessionForReview) -> str:
    """Links to what is on GitHub as it is here; where something is not, that it is left out."""
    there = all(
        patiently("file", partial(file_sha, bot, path, session.commit), bot) == blob_sha(content)
        for path, content in session.files.items()
    )
    if not there:
        return (
            "Its log and its drawings are left out: what GitHub has of them is not what this was submitted from. Once "
            "they are committed and pushed, submit it again.\n"
        )
    server = bot.step.environment.get("GITHUB_SERVER_URL") or "https://github.com"
    address = f"{server}/{bot.step.repository}/blob/{session.commit}"
    links = (escape.link(path.rsplit("/", 1)[-1], f"{address}/{path}") for path in session.files)
    return f"Its log and its drawings: {', '.join(links)}\n"
