"""What a repository needs of GitHub before its pull requests are measured: each setting as it is, and as it will be.

A setting is read again before it is changed, and after.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from github import GithubException

from kernelgate.bench.core.documentation import page
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.ci.github.check_run import CHECK_NAME
from kernelgate.ci.github.client import Bot, DeniedError, GitHubError, patiently, request, unless_gone
from kernelgate.ci.github.plan import FORK_ENVIRONMENT
from kernelgate.ci.judge.gate import Label

T = TypeVar("T")
Json = dict[str, Any]
NAME = "kernelgate"
"""Of the environment, the rulesets and the runner group."""
ADMINISTRATION, ISSUES, PAGES = (
    f"the repository permission “{name}: read and write”" for name in ("Administration", "Issues", "Pages")
)
RUNNERS = "the organisation permission “Self-hosted runners: read and write”"
LABELS = {
    Label.IMPROVED: ("0e8a16", "kernelgate measured this change to be faster"),
    Label.REGRESSED: ("b60205", "kernelgate measured this change to be slower"),
    Label.UNCHANGED: ("c5def5", "kernelgate measured this change to make no difference"),
    Label.ACCEPTED: ("fbca04", "Somebody accepted that this commit is slower"),
}
QUEUE_MINUTES = 240
"""How long a merge queue waits for the check: a build, others' measurements on the GPU, and its own hour there."""
WORKFLOWS = ".github/workflows"
_MEASURES = re.compile(rf"uses: ([\w.-]+/[\w.-]+)/{re.escape(WORKFLOWS)}/measure\.yml@(\S+)")
_TAG = re.compile(r"v\d[\w.-]*")
_CALLS = re.compile(rf"uses: ([\w.-]+/[\w.-]+)/{re.escape(WORKFLOWS)}/measure-pull-request\.yml@(\S+)")


@dataclass(frozen=True)
class Place:
    """Where the repository is."""

    bot: Bot
    repository: Json
    judge: tuple[str, str]
    """The repository whose measure.yml is called, and at which ref."""
    home: bool
    """It is kernelgate's own, or a fork."""
    me: int

    @property
    def address(self) -> str:
        return f"/repos/{self.repository['full_name']}"

    @property
    def organisation(self) -> str | None:
        owner = self.repository["owner"]
        return str(owner["login"]) if owner["type"] == "Organization" else None

    def get(self, address: str) -> Json | None:
        found: Json | None = unless_gone(address, partial(request, self.bot, "GET", address), self.bot)
        return found


@dataclass(frozen=True)
class Setting:
    at: Place
    name: str
    right: str
    """Of a fine-grained token, which changing it takes."""
    wanted: Json
    find: Callable[[], str]
    """Its address; empty where there is none yet."""
    collection: str = ""
    """Where it is made; empty where its own address makes it, too."""
    verb: str = "PUT"
    """Which changes it."""
    once: str = ""
    """What is sent where it is made alone."""
    form: Callable[[Json], Json] | None = None
    """What GitHub shows in the form in which it is written; None: the keys that are wanted."""

    def look(self) -> Json | None:
        """As it is, in the form in which it is written; None where there is none."""
        address = self.find()
        found = self.at.get(address) if address else None
        return found and (self.form(found) if self.form else picked(found, self.wanted))

    def write(self, now: Json | None, then: Json | None) -> None:
        """From what is to what will be; None: it is removed."""
        if then is None:
            request(self.at.bot, "DELETE", self.find())
        elif now is None and self.collection:
            request(self.at.bot, "POST", self.collection, then)
        else:
            sent = {key: value for key, value in then.items() if key != self.once}
            request(self.at.bot, self.verb, self.find(), sent)

    def read(self) -> Json | None:
        return _allowed(self.right, self.look)

    def change(self, then: Json | None) -> None:
        """Raises GitHubError where GitHub refuses, or keeps something else."""

        def step() -> None:
            if (now := self.look()) != then:  # it may be done: an answer can be lost
                try:
                    self.write(now, then)
                except GithubException as error:
                    if error.status != 409:  # which would be tried again, and passes where somebody else writes
                        raise
                    said = "GitHub answers 409, as where the organisation forbids the setting: change that first"
                    raise GitHubError(f"{self.name}: {said}") from None

        _allowed(self.right, lambda: patiently(self.name, step, self.at.bot))
        if not holds(kept := self.read(), then):
            raise GitHubError(f"{self.name}: GitHub took the change, and keeps {shown(kept, then or {})}")


def _allowed(right: str, step: Callable[[], T]) -> T:
    try:
        return step()
    except DeniedError as error:
        raise DeniedError(f"{error}; the token needs {right}") from None


def picked(found: Json, keys: Collection[str]) -> Json:
    return {key: found[key] for key in keys if key in found}


def holds(value: Any, wanted: Any) -> bool:
    """Whether a value has all that is wanted; GitHub adds defaults and dates to what it was given."""
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(key in value and holds(value[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        return isinstance(value, list) and all(any(holds(one, each) for one in value) for each in wanted)
    return bool(value == wanted)


def shown(value: Json | None, beside: Json) -> str:
    """The parts in which a value differs from the one beside it, for people."""
    if value is None:
        return "not there"
    if not value:
        return "there"
    parts = {key: each for key, each in value.items() if key not in beside or not holds(each, beside[key])}
    return ", ".join(f"{key}: {json.dumps(each)}" for key, each in (parts or value).items())


def place(bot: Bot) -> Place:
    """Raises KernelgateError where the token does not administer the repository, or that has no workflows yet."""
    name = bot.step.repository or ""
    found = unless_gone("repository", lambda: request(bot, "GET", f"/repos/{name}"), bot)
    if found is None:
        raise UsageError(f"there is no repository {name}, or the token does not see it")
    if not (found.get("permissions") or {}).get("admin"):
        raise DeniedError(f"only an administrator of {name} can set it up, and the token's owner is none")
    home = _text(bot, name, "measure.yml") is not None
    judge = (name, str(found["default_branch"])) if home else _judge(bot, name)
    return Place(bot, found, judge, home, int(patiently("user", lambda: request(bot, "GET", "/user"), bot)["id"]))


def _judge(bot: Bot, name: str) -> tuple[str, str]:
    called = _CALLS.search(_text(bot, name, "performance.yml") or "")
    if called is None:
        begin = f"run `kernelgate init` there and push, or see {page('install.md')}"
        raise KernelgateError(f"{name} has no {WORKFLOWS}/performance.yml that calls kernelgate: {begin}")
    measures = _MEASURES.search(_text(bot, called[1], "measure-pull-request.yml", called[2]) or "")
    return (measures[1], measures[2]) if measures else (called[1], called[2])


def _text(bot: Bot, repository: str, workflow: str, ref: str = "") -> str | None:
    address = f"/repos/{repository}/contents/{WORKFLOWS}/{workflow}" + (f"?ref={ref}" if ref else "")
    found = unless_gone(workflow, lambda: request(bot, "GET", address), bot)
    return base64.b64decode(found["content"]).decode(errors="replace") if found else None


def settings(at: Place) -> list[Setting]:
    """In the order in which they are made. The runner group is the last: GitHub does not offer it to everybody."""
    actions, labels = f"{at.address}/actions/permissions", f"{at.address}/labels"
    # The workflows grant each job the permissions that it needs. One of them opens pull requests.
    token = {"default_workflow_permissions": "read", "can_approve_pull_request_reviews": True}
    every = [Setting(at, "workflow permissions", ADMINISTRATION, token, lambda: f"{actions}/workflow")]
    if not at.repository["private"]:  # nobody outside sees a private one
        name, forks = "approval of forks' workflows", f"{actions}/fork-pr-contributor-approval"
        every += [Setting(at, name, ADMINISTRATION, {"approval_policy": "all_external_contributors"}, lambda: forks)]
    for name, (color, description) in LABELS.items():
        looks, one = {"name": str(name), "color": color, "description": description}, f"{labels}/{quote(name)}"
        every += [Setting(at, f"label {name}", ISSUES, looks, partial(str, one), labels, "PATCH", once="name")]
    # Who approves that a fork uses the GPU: whoever does already, else who sets this up.
    now = _environment(at, FORK_ENVIRONMENT, {}).read() or {}
    forks_wanted = {**now, "reviewers": now.get("reviewers") or [{"type": "User", "id": at.me}]}
    every += [_environment(at, NAME, {}), _environment(at, FORK_ENVIRONMENT, forks_wanted)]
    every += [_ruleset(at, NAME, _pull_rules(at))]
    # GitHub has merge queues for organisations.
    every += [_ruleset(at, f"{NAME} merge queue", [_QUEUE_RULE])] if at.organisation else []
    if at.home:  # a workflow publishes them
        pages = f"{at.address}/pages"
        every += [Setting(at, "pages", PAGES, {"build_type": "workflow"}, lambda: pages, pages, form=_source)]
    every += [_runner_group(at), _member(at)] if at.organisation else []
    return every


def _environment(at: Place, name: str, wanted: Json) -> Setting:
    address = f"{at.address}/environments/{name}"
    return Setting(at, f"environment {name}", ADMINISTRATION, wanted, lambda: address, form=_as_put)


def _as_put(found: Json) -> Json:
    policy = found.get("deployment_branch_policy")
    written: Json = {"deployment_branch_policy": policy, "wait_timer": 0, "reviewers": []}
    for rule in found.get("protection_rules", ()):
        if rule["type"] == "wait_timer":
            written["wait_timer"] = rule["wait_timer"]
        if rule["type"] == "required_reviewers":
            written["prevent_self_review"] = rule["prevent_self_review"]
            written["reviewers"] = [{"type": one["type"], "id": one["reviewer"]["id"]} for one in rule["reviewers"]]
    return written


_QUEUE_RULE: Json = {
    "type": "merge_queue",
    "parameters": {
        "check_response_timeout_minutes": QUEUE_MINUTES,
        "grouping_strategy": "ALLGREEN",
        "max_entries_to_build": 2,
        "max_entries_to_merge": 5,
        "merge_method": "MERGE",
        "min_entries_to_merge": 1,
        "min_entries_to_merge_wait_minutes": 1,
    },
}


def _pull_rules(at: Place) -> list[Json]:
    reviews = {
        "required_approving_review_count": 1,
        "dismiss_stale_reviews_on_push": True,
        "require_code_owner_review": False,
        "require_last_push_approval": False,
        "required_review_thread_resolution": False,
    }
    required = [{"context": name} for name in (CHECK_NAME, *(("checks",) if at.home else ()))]
    checks = {"strict_required_status_checks_policy": False, "required_status_checks": required}
    return [
        {"type": "pull_request", "parameters": reviews},
        {"type": "required_status_checks", "parameters": checks},
    ]


def _ruleset(at: Place, name: str, rules: list[Json]) -> Setting:
    every = f"{at.address}/rulesets"
    branch = {"ref_name": {"include": ["~DEFAULT_BRANCH"], "exclude": []}}
    wanted = {"name": name, "target": "branch", "enforcement": "active", "conditions": branch, "rules": rules}

    def find() -> str:
        # A list, of which those of the organisation are none of ours.
        found: Any = at.get(f"{every}?includes_parents=false") or []
        return next((f"{every}/{one['id']}" for one in found if one["name"] == name), "")

    form = partial(picked, keys=(*wanted, "bypass_actors"))
    return Setting(at, f"ruleset {name}", ADMINISTRATION, wanted, find, every, form=form)


def _source(found: Json) -> Json:
    """Where pages come from: a workflow, or a branch and a folder."""
    return picked(found, ["build_type"] if found.get("build_type") == "workflow" else ["build_type", "source"])


def group_id(at: Place) -> int | None:
    """Of the group that the machine's /etc/kernelgate/runner.conf names."""
    found = at.get(f"/orgs/{at.organisation}/actions/runner-groups?per_page=100") or {"runner_groups": []}
    return next((int(one["id"]) for one in found["runner_groups"] if one["name"] == NAME), None)


def _runner_group(at: Place) -> Setting:
    """It takes jobs of the one workflow that measures, whatever a pull request's own workflows name."""
    every, (judge, ref) = f"/orgs/{at.organisation}/actions/runner-groups", at.judge
    kind = "tags" if _TAG.fullmatch(ref) else "heads"
    wanted = {
        "name": NAME,
        "visibility": "selected",
        "allows_public_repositories": True,
        "restricted_to_workflows": True,
        "selected_workflows": [f"{judge}/{WORKFLOWS}/measure.yml@refs/{kind}/{ref}"],
    }

    def find() -> str:
        number = group_id(at)
        return "" if number is None else f"{every}/{number}"

    return Setting(at, f"runner group of {at.organisation}", RUNNERS, wanted, find, every, "PATCH")


class Membership(Setting):
    """A repository in the runner group."""

    def look(self) -> Json | None:
        every = self.find().rpartition("/")[0]
        listed = self.at.get(f"{every}?per_page=100") if every else None
        known = [{"repository": one["id"]} for one in (listed or {"repositories": []})["repositories"]]
        return self.wanted if self.wanted in known else None

    def write(self, _: Json | None, then: Json | None) -> None:
        if address := self.find():
            request(self.at.bot, "DELETE" if then is None else "PUT", address)


def _member(at: Place) -> Setting:
    group, number = _runner_group(at), int(at.repository["id"])

    def find() -> str:
        address = group.find()
        return address and f"{address}/repositories/{number}"

    return Membership(at, "repository in the runner group", RUNNERS, {"repository": number}, find)


def runner_conf(at: Place) -> str:
    """The lines of /etc/kernelgate/runner.conf that say whose jobs the machine runs."""
    group = group_id(at) if at.organisation else None
    owner = (at.organisation, group) if group is not None else ("", "")
    return f"ORGANISATION={owner[0]}\nRUNNER_GROUP_ID={owner[1]}\nREPOSITORIES={at.repository['full_name']}"
