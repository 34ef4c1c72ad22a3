"""A comment of the bot in an issue or a pull request, open or closed, found again by its author and its last line."""

from __future__ import annotations

from github.IssueComment import IssueComment

from kernelgate.ci.github.client import Bot, GitHubError, until_done
from kernelgate.ci.github.stamp import same_text


def put(bot: Bot, number: int, text: str, last: str) -> None:
    """There is one comment of the bot with this last line, a hidden one, and it holds `text`. Raises GitHubError."""
    body = f"{text.rstrip()}\n{last}"

    def step() -> str | None:
        issue = bot.repository.get_issue(number)
        own = [one for one in issue.get_comments() if _is_own(bot, one, last)]
        if not own:
            if issue.create_comment(body).user.login == bot.login:
                return "created"
            # It would not be found again, and the next text would become another.
            raise GitHubError(f"the token does not post as {bot.login}: set KERNELGATE_BOT to who it posts as")
        if same_text(own[0].body, body):
            return "as it was"
        own[0].edit(body)
        return "edited"

    bot.step.log(f"comment: {until_done('comment', step, bot)}")


def say(bot: Bot, number: int, text: str, last: str) -> None:
    """The same. Where the bot may not comment, the log says so; the summary has the text in any case."""
    try:
        put(bot, number, text, last)
    except GitHubError as error:
        bot.step.warn(str(error))
    bot.step.summary(text)


def _is_own(bot: Bot, comment: IssueComment, last: str) -> bool:
    """Anybody can copy a last line."""
    written = comment.user is not None and comment.user.login == bot.login
    return written and (comment.body or "").rstrip().rsplit("\n", 1)[-1].strip() == last
