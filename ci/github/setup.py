"""What a repository needs of GitHub before its pull requests are measured: each setting as it is, and as it will be.

A setting is read again before it is changed, and after.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from github import GithubException

from kernelgate.bench.core.documentation import page
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.ci.github.check_run import CHECK_NAME
from kernelgate.ci.github.client import Bot, DeniedError, GitHubError, patiently, request, unless_gone
from kernelgate.ci.github.plan import FORK_ENVIRONMENT
from kernelgate.ci.github.upsert import LABELS

T = TypeVar("T")
Json = dict[str, Any]
NAME = "kernelgate"
"""Of the environment, the rulesets and the runner group."""
ADMINISTRATION, ISSUES, PAGES = (
    f"the repository permission “{name}: read and write”" for name in ("Administration", "Issues", "Pages")
)
RUNNERS = "the organisation permission “Self-hosted runners: read and write”"
QUEUE_MINUTES = 240
"""How long a merge queue waits for the check: a build, others' measurements on the GPU, and its own hour there."""
WORKFLOWS = ".github/workflows"
_MEASURES = re.compile(rf"uses: ([\w.-]+/[\w.-]+)/{re.escape(WORKFLOWS)}/measure\.yml@(\S+)")
_TAG = re.compile(r"v\d[\w.-]*")
_CALLS = re.compile(rf"uses: ([\w.-]+/[\w.-]+)/{re.escape(WORKFLOWS)}/measure-pull-request\.yml@(\S+)")


@dataclass(frozen=True)
class Setting:
    name: str
    right: str
    """Of a fine-grained token, which changing it takes."""
    wanted: Json
    look: Callable[[], Json | None]
    """As it is, in the form in which it is written; None where there is none."""
    write: Callable[[Json | None, Json | None], None]
    """From what is to what will be; None: it is removed."""

    def read(self) -> Json | None:
        return _allowed(self.right, self.look)

    def change(self, bot: Bot, then: Json | None) -> None:
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

        _allowed(self.right, lambda: patiently(self.name, step, bot))
        if not holds(kept := self.read(), then):
            raise GitHubError(f"{self.name}: GitHub took the change, and keeps {shown(kept, then or {})}")


def _allowed(right: str, step: Callable[[], T]) -> T:
    try:
        return step()
    except DeniedError as error:
        raise DeniedError(f"{error}; the token needs {right}") from None


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
    return ", ".join(f"{key}: {_plain(each)}" for key, each in (parts or value).items())


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_plain(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_plain, value)) + "]"
    words = {True: "yes", False: "no", None: "none"}
    return words[value] if value is None or isinstance(value, bool) else str(value)


# The settings ---------------------------------------------------------------------------------------------------------


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
    address: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", f"/repos/{self.repository['full_name']}")

    @property
    def organisation(self) -> str | None:
        owner = self.repository["owner"]
        return str(owner["login"]) if owner["type"] == "Organization" else None

    def get(self, address: str) -> Json | None:
        found: Json | None = unless_gone(address, partial(request, self.bot, "GET", address), self.bot)
        return found


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
    every = [_workflow_token(at)]
    # Nobody outside sees a private repository.
    every += [] if at.repository["private"] else [_approval_of_forks(at)]
    every += [_label(at, name, *looks) for name, looks in LABELS.items()]
    every += [_environment(at, NAME, {}), _environment(at, FORK_ENVIRONMENT, _reviewers(at))]
    every += [_ruleset(at, NAME, _pull_rules(at))]
    # GitHub has merge queues for organisations.
    every += [_ruleset(at, f"{NAME} merge queue", [_QUEUE_RULE])] if at.organisation else []
    every += [_pages(at)] if at.home else []
    every += [_runner_group(at, at.organisation), _group_member(at, at.organisation)] if at.organisation else []
    return every


def _workflow_token(at: Place) -> Setting:
    """The workflows grant each job the permissions that it needs. One of them opens pull requests."""
    wanted = {"default_workflow_permissions": "read", "can_approve_pull_request_reviews": True}
    return _always_there(at, "workflow permissions", "actions/permissions/workflow", wanted)


def _approval_of_forks(at: Place) -> Setting:
    wanted = {"approval_policy": "all_external_contributors"}
    return _always_there(at, "approval of forks' workflows", "actions/permissions/fork-pr-contributor-approval", wanted)


def _always_there(at: Place, name: str, path: str, wanted: Json) -> Setting:
    address = f"{at.address}/{path}"

    def write(_: Json | None, then: Json | None) -> None:
        request(at.bot, "PUT", address, then)

    return Setting(name, ADMINISTRATION, wanted, lambda: _picked(at.get(address), wanted), write)


def _picked(found: Json | None, keys: Mapping[str, Any]) -> Json | None:
    return found and {key: found[key] for key in keys if key in found}


def _resource(
    at: Place, name: str, right: str, wanted: Json, collection: str, one: str, verb: str = "PATCH"
) -> Setting:
    """What is made in a collection, and changed and removed at an address of its own."""

    def write(now: Json | None, then: Json | None) -> None:
        if then is None:
            request(at.bot, "DELETE", one)
        elif now is None:
            request(at.bot, "POST", collection, then)
        else:
            request(at.bot, verb, one, then)

    return Setting(name, right, wanted, lambda: _picked(at.get(one), wanted), write)


def _label(at: Place, name: str, color: str, description: str) -> Setting:
    wanted, every = {"name": str(name), "color": color, "description": description}, f"{at.address}/labels"
    made = _resource(at, f"label {name}", ISSUES, wanted, every, f"{every}/{quote(name)}")

    def write(now: Json | None, then: Json | None) -> None:
        """A label is edited without its name."""
        changed = then if now is None or then is None else {key: then[key] for key in then if key != "name"}
        made.write(now, changed)

    return Setting(made.name, ISSUES, wanted, made.look, write)


def _environment(at: Place, name: str, wanted: Json) -> Setting:
    address = f"{at.address}/environments/{name}"

    def write(_: Json | None, then: Json | None) -> None:
        request(at.bot, "DELETE" if then is None else "PUT", address, then)

    return Setting(f"environment {name}", ADMINISTRATION, wanted, lambda: _as_put(at.get(address)), write)


def _as_put(found: Json | None) -> Json | None:
    """An environment in the form in which it is written."""
    if found is None:
        return None
    written: Json = {
        "deployment_branch_policy": found.get("deployment_branch_policy"),
        "wait_timer": 0,
        "reviewers": [],
    }
    for rule in found.get("protection_rules", ()):
        if rule["type"] == "wait_timer":
            written["wait_timer"] = rule["wait_timer"]
        if rule["type"] == "required_reviewers":
            written["prevent_self_review"] = rule["prevent_self_review"]
            written["reviewers"] = [{"type": one["type"], "id": one["reviewer"]["id"]} for one in rule["reviewers"]]
    return written


def _reviewers(at: Place) -> Json:
    """Who approves that a fork uses the GPU: whoever does already, else who sets this up."""
    address = f"{at.address}/environments/{FORK_ENVIRONMENT}"
    now = _as_put(_allowed(ADMINISTRATION, lambda: at.get(address))) or {}
    return {**now, "reviewers": now.get("reviewers") or [{"type": "User", "id": at.me}]}


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
    names = [CHECK_NAME, "checks"] if at.home else [CHECK_NAME]
    required = [{"context": name} for name in names]
    checks = {"strict_required_status_checks_policy": False, "required_status_checks": required}
    return [
        {"type": "pull_request", "parameters": reviews},
        {"type": "required_status_checks", "parameters": checks},
    ]


def _ruleset(at: Place, name: str, rules: list[Json]) -> Setting:
    every = f"{at.address}/rulesets"
    branch = {"ref_name": {"include": ["~DEFAULT_BRANCH"], "exclude": []}}
    wanted = {"name": name, "target": "branch", "enforcement": "active", "conditions": branch, "rules": rules}

    def number() -> int | None:
        # A list, of which those of the organisation are none of ours.
        found: Any = at.get(f"{every}?includes_parents=false") or []
        return next((one["id"] for one in found if one["name"] == name), None)

    def look() -> Json | None:
        one = number()
        return _picked(at.get(f"{every}/{one}"), {**wanted, "bypass_actors": []}) if one is not None else None

    def write(now: Json | None, then: Json | None) -> None:
        _resource(at, name, ADMINISTRATION, wanted, every, f"{every}/{number()}", "PUT").write(now, then)

    return Setting(f"ruleset {name}", ADMINISTRATION, wanted, look, write)


def _pages(at: Place) -> Setting:
    """A workflow publishes them."""
    address = f"{at.address}/pages"
    made = _resource(at, "pages", PAGES, {"build_type": "workflow"}, address, address, "PUT")
    return Setting(made.name, PAGES, made.wanted, lambda: _source(at.get(address)), made.write)


def _source(found: Json | None) -> Json | None:
    kind = found and found.get("build_type")
    return found and ({"build_type": kind} if kind == "workflow" else _picked(found, {"build_type": "", "source": ""}))


# The organisation's runner group --------------------------------------------------------------------------------------


def group_id(at: Place) -> int | None:
    """Of the group that the machine's /etc/kernelgate/runner.conf names."""
    found = at.get(f"/orgs/{at.organisation}/actions/runner-groups?per_page=100") or {"runner_groups": []}
    return next((int(one["id"]) for one in found["runner_groups"] if one["name"] == NAME), None)


def _runner_group(at: Place, organisation: str) -> Setting:
    """It takes jobs of the one workflow that measures, whatever a pull request's own workflows name."""
    every, (judge, ref) = f"/orgs/{organisation}/actions/runner-groups", at.judge
    wanted = {
        "name": NAME,
        "visibility": "selected",
        "allows_public_repositories": True,
        "restricted_to_workflows": True,
        "selected_workflows": [
            f"{judge}/{WORKFLOWS}/measure.yml@refs/{'tags' if _TAG.fullmatch(ref) else 'heads'}/{ref}"
        ],
    }

    def look() -> Json | None:
        one = group_id(at)
        return _picked(at.get(f"{every}/{one}"), wanted) if one is not None else None

    def write(now: Json | None, then: Json | None) -> None:
        _resource(at, NAME, RUNNERS, wanted, every, f"{every}/{group_id(at)}").write(now, then)

    return Setting(f"runner group of {organisation}", RUNNERS, wanted, look, write)


def _group_member(at: Place, organisation: str) -> Setting:
    number = int(at.repository["id"])

    def address() -> str:
        return f"/orgs/{organisation}/actions/runner-groups/{group_id(at)}/repositories"

    def look() -> Json | None:
        listed = at.get(f"{address()}?per_page=100") if group_id(at) is not None else None
        known = [one["id"] for one in (listed or {"repositories": []})["repositories"]]
        return {"repository": number} if number in known else None

    def write(_: Json | None, then: Json | None) -> None:
        if group_id(at) is not None:
            request(at.bot, "DELETE" if then is None else "PUT", f"{address()}/{number}")

    return Setting("repository in the runner group", RUNNERS, {"repository": number}, look, write)


def runner_conf(at: Place) -> str:
    """The lines of /etc/kernelgate/runner.conf that say whose jobs the machine runs."""
    group = group_id(at) if at.organisation else None
    owner = (at.organisation, group) if group is not None else ("", "")
    return f"ORGANISATION={owner[0]}\nRUNNER_GROUP_ID={owner[1]}\nREPOSITORIES={at.repository['full_name']}"
