"""Pull requests whose verdict is known, opened on a real repository; and whether comment, check, label and profile are
those that were promised. What is there is found by its branches, so that each step may be repeated, and undone."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from github.PullRequest import PullRequest
from pydantic import ValidationError

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError, UsageError, faults
from kernelgate.bench.record import Model
from kernelgate.ci.document.escape import visible
from kernelgate.ci.github import upsert
from kernelgate.ci.github.baseline_pr import Offer, open_pull, put
from kernelgate.ci.github.check_run import CHECK_NAME
from kernelgate.ci.github.client import Bot, default_branch, patiently, read_pull, request, unless_gone

FILE = Path(".ci/proposals.toml")
BRANCHES = "kernelgate-prove/"
BASE = f"{BRANCHES}base"
PROFILED, PROFILE = "slower", "profile"
"""The pull request that is profiled by a dispatch, and the name of that promise."""
POLL_S = 30.0
DESCRIPTION = """\
## Intent and hypothesis
{0.body}
## What was changed
{0.title}
## Claimed effect
None.
## Testing done
`kernelgate prove` opened this pull request, whose verdict is known, and closes it with `--undo`.
"""


class Change(Model):
    """`old` stands once in the file."""

    file: str
    old: str
    new: str


class Proposal(Model):
    promise: str
    title: str
    body: str
    says: str
    """A pattern of the comment's first line, …"""
    check: str
    label: str
    changes: tuple[Change, ...] = ()


class Proposals(Model):
    begin: tuple[Change, ...]
    pulls: dict[str, Proposal]

    def changes(self, name: str) -> tuple[Change, ...]:
        """What turns the base into this pull request's head."""
        undone = (Change(file=one.file, old=one.new, new=one.old) for one in reversed(self.begin))
        return self.pulls[name].changes or tuple(undone)

    @property
    def files(self) -> tuple[str, ...]:
        every = (self.begin, *(one.changes for one in self.pulls.values()))
        return tuple(dict.fromkeys(change.file for changes in every for change in changes))


@dataclass(frozen=True)
class Promise:
    name: str
    promised: str
    found: str
    kept: bool


def read(path: Path) -> Proposals:
    try:
        return Proposals.model_validate(tomllib.loads(files.content(path).decode()))
    except OSError:
        raise UsageError(f"{path} cannot be read: call this in a checkout of the repository that is proved") from None
    except ValueError as error:
        why = f"does not fit: {faults(error)}" if isinstance(error, ValidationError) else f"is not TOML: {error}"
        raise UsageError(f"{path} {why}") from None


def changed(files: Mapping[str, str], changes: Sequence[Change]) -> dict[str, str]:
    """The files with these changes. Raises KernelgateError naming the text that does not stand there once."""
    made = dict(files)
    for one in changes:
        if (times := made.get(one.file, "").count(one.old)) != 1:
            raise KernelgateError(f"{one.file} has {visible(one.old.strip(), 60)!r} {times} times, and not once")
        made[one.file] = made[one.file].replace(one.old, one.new)
    return made


def opened(bot: Bot, every: Proposals) -> dict[str, int]:
    """The number of each pull request, which is open now; their base is a branch of its own."""
    main = default_branch(bot)
    commit = _tip(bot, main)
    if commit is None:
        raise KernelgateError(f"the repository has no branch {visible(main)}")
    files = {path: _text(bot, path, commit) for path in every.files}
    begun = changed(files, every.begin)
    heads = {name: changed(begun, every.changes(name)) for name in every.pulls}  # before anything is written
    put(bot, Offer(BASE, _differing(files, begun), "Begin what kernelgate prove changes", "", commit, None))
    base = _tip(bot, BASE) or commit
    numbers = {}
    for name, proposal in every.pulls.items():
        new, body = _differing(begun, heads[name]), DESCRIPTION.format(proposal)
        numbers[name] = put(bot, Offer(BRANCHES + name, new, proposal.title, body, base, BASE))
    return numbers


def _differing(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[tuple[str, bytes], ...]:
    return tuple((path, text.encode()) for path, text in new.items() if text != old[path])


def _tip(bot: Bot, branch: str) -> str | None:
    return unless_gone(branch, lambda: str(bot.repository.get_git_ref(f"heads/{branch}").object.sha), bot)


def _text(bot: Bot, path: str, ref: str) -> str:
    found = unless_gone(path, lambda: bot.repository.get_contents(path, ref=ref), bot)
    if found is None or isinstance(found, list):
        raise KernelgateError(f"{visible(path)} is no file of the repository's default branch")
    return found.decoded_content.decode(errors="replace")


def there(bot: Bot, every: Proposals) -> dict[str, PullRequest | None]:
    """The branches of a call before, the base the last: each with its open pull request."""
    names = [*(BRANCHES + name for name in every.pulls), BASE]
    found = [name for name in names if _tip(bot, name)]
    return {name: patiently(name, partial(open_pull, bot, name), bot) for name in found}


def undo(bot: Bot, branch: str, pull: PullRequest | None) -> None:
    if pull is not None:
        patiently(branch, lambda: pull.edit(state="closed"), bot)

    def delete() -> None:
        if _tip(bot, branch):  # an answer can be lost
            request(bot, "DELETE", f"{bot.repository.url}/git/refs/heads/{branch}")

    patiently(branch, delete, bot)


def dispatch_profile(bot: Bot, number: int, gpu: str) -> None:
    """Starts profile.yml for the pull request, unless it has such a comment already."""
    if _first_line(bot, number, PROFILE) is None:
        body = {"ref": default_branch(bot), "inputs": {"pull-request": str(number), "gpu": gpu}}
        address = f"{bot.repository.url}/actions/workflows/profile.yml/dispatches"
        patiently("profile.yml", lambda: request(bot, "POST", address, body), bot)


def results(bot: Bot, every: Proposals, numbers: Mapping[str, int], wait_s: float) -> Iterator[Promise]:
    """Each promise as soon as it can be told; broken after `wait_s` seconds where nothing came."""
    waiting, doubted, waited = [*every.pulls, PROFILE], set[str](), 0.0
    while waiting:
        for name in list(waiting):
            late = waited >= wait_s
            if name == PROFILE:
                found = _profile(bot, numbers[PROFILED], late)
            else:
                found = verdict_of(bot, name, every.pulls[name], numbers[name], late)
            if found and (found.kept or late or name in doubted):
                waiting.remove(name)
                yield found
            elif found:  # comment, check and label are posted one after the other: it counts at the second look
                doubted.add(name)
        if waiting:
            bot.sleep(POLL_S)
            waited += POLL_S


def verdict_of(bot: Bot, name: str, promised: Proposal, number: int, late: bool) -> Promise | None:
    pull = read_pull(bot, number)

    def ended() -> list[str]:
        runs = bot.repository.get_commit(pull.head.sha).get_check_runs(check_name=CHECK_NAME)
        return [str(run.conclusion) for run in runs if run.status == "completed"]

    checks, said = patiently("check runs", ended, bot), _first_line(bot, number, "verdict", pull.head.sha)
    # What is in doubt is measured again, twice at most.
    if (not checks or said is None or checks[0] == "action_required") and not late:
        return None
    labels = [label.name for label in pull.labels if label.name in set(upsert.VERDICTS)]
    told = f"the comment: {said or 'none'}; the check: {checks[0] if checks else 'none'}; labels: {labels or 'none'}"
    kept = bool(said and re.search(promised.says, said)) and checks[:1] == [promised.check]
    kept = kept and labels == [promised.label][: bool(promised.label)]
    return Promise(name, promised.promise, visible(told, 400), kept)


def _profile(bot: Bot, number: int, late: bool) -> Promise | None:
    said = _first_line(bot, number, PROFILE)
    if said is None and not late:
        return None
    promised, told = "a dispatched profile ends in a comment", visible(f"the comment: {said or 'none'}", 400)
    return Promise(PROFILE, promised, told, kept=bool(said and "Profiled: " in said))


def _first_line(bot: Bot, number: int, topic: str, head: str | None = None) -> str | None:
    found = patiently("comments", lambda: upsert.shown(bot, number, topic), bot)
    return None if found is None or head not in (None, found[0].head_sha) else found[1].strip().splitlines()[0]


COLUMNS = ("CPU", "H200", "L4", "engine", "GitHub")
EMPTY = "not run"
_TABLE = re.compile(r"(<!-- promises: begin -->\n)(.*?)(<!-- promises: end -->)", re.DOTALL)


def table_files(page: Path, column: str, day: str, repository: str, told: Sequence[Promise]) -> dict[Path, str]:
    """The page with its column filled, and the record beside it. Raises UsageError where there is no such table."""
    kept = page.with_name(f"proof-{column.lower()}.json")
    record = {"repository": repository, "day": day, "promises": [asdict(one) for one in told]}
    try:
        text = files.content(page).decode()
    except OSError as error:
        raise UsageError(f"{page} cannot be read: {error.strerror}") from None
    if not (found := _TABLE.search(text)):
        raise UsageError("the page has no table between <!-- promises: begin --> and <!-- promises: end -->")
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in found[2].splitlines()[2:]]
    cells = {row[0]: dict(zip(COLUMNS, row[1:], strict=False)) for row in rows}
    for one in told:
        result = f"{'kept' if one.kept else '**broken**'}, {day} ([record]({kept.name}))"
        cells.setdefault(one.promised, {})[column] = result
    lines = [["promise", *COLUMNS], ["---"] * (1 + len(COLUMNS))]
    lines += [[name, *(known.get(each, EMPTY) for each in COLUMNS)] for name, known in cells.items()]
    table = "".join(f"|{'|'.join(line)}|\n" for line in lines)
    return {kept: json.dumps(record, indent=1) + "\n", page: text[: found.start(2)] + table + text[found.end(2) :]}
