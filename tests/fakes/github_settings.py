"""What an administrator sets on GitHub: importing this teaches the fake to keep it."""

from __future__ import annotations

from typing import Any

from tests.fakes.github_server import Answer, FakeGitHub, Json, Request, example, route

ADMIN, RUNNERS = "administration: write", "organization_self_hosted_runners: write"
RIGHTS = {
    **dict.fromkeys(("administration", "issues", "pages", "organization_self_hosted_runners"), "write"),
    "contents": "read",
}
"""Of the token that docs/install.md asks for."""
BEGIN = {
    "/actions/permissions/workflow": {
        "default_workflow_permissions": "write",
        "can_approve_pull_request_reviews": False,
    },
    "/actions/permissions/fork-pr-contributor-approval": {"approval_policy": "first_time_contributors"},
}
"""As GitHub begins a repository."""
CONFLICT = {"message": "Conflict", "documentation_url": "https://docs.github.com/rest"}


@route("GET", "/user", "contents: read")
def _me(*_: Any) -> Any:
    return example("private-user-response-with-public-profile-information") | {"user_view_type": "public"}


for path in ("/actions/permissions/workflow", "/actions/permissions/fork-pr-contributor-approval"):
    route("GET", path, ADMIN)(lambda hub, _, path=path: hub.settings[path])
    route("PUT", path, ADMIN)(lambda hub, asked, path=path: _keep(hub, path, asked.body))


def _keep(github: FakeGitHub, path: str, body: Json) -> Answer:
    github.settings[path] = github.settings.get(path, {}) | body
    return Answer(204)


def _drop(github: FakeGitHub, path: str) -> Answer | None:
    return Answer(204) if github.settings.pop(path, None) is not None else None


@route("GET", "/environments/{environment_name}", ADMIN)
def _environment(github: FakeGitHub, _: Request, environment_name: str) -> Any:
    kept = github.settings.get(f"/environments/{environment_name}")
    if kept is None:
        return None
    shown: Json = example("environment")
    waits, reviewed, *_others = shown["protection_rules"]
    user = reviewed["reviewers"][0]
    reviewers = [
        user | {"type": one["type"], "reviewer": user["reviewer"] | {"id": one["id"]}}
        for one in kept.get("reviewers") or ()
    ]
    rules = [waits | {"wait_timer": kept["wait_timer"]}] if kept.get("wait_timer") else []
    rules += [reviewed | {"reviewers": reviewers}] if reviewers else []
    policy = kept.get("deployment_branch_policy")
    return shown | {"name": environment_name, "protection_rules": rules, "deployment_branch_policy": policy}


@route("PUT", "/environments/{environment_name}", ADMIN)
def _put_environment(github: FakeGitHub, request: Request, environment_name: str) -> Any:
    github.settings[f"/environments/{environment_name}"] = request.body
    return _environment(github, request, environment_name)


@route("DELETE", "/environments/{environment_name}", ADMIN)
def _drop_environment(github: FakeGitHub, _: Request, environment_name: str) -> Any:
    return _drop(github, f"/environments/{environment_name}")


@route("GET", "/labels/{name}", "issues: read")
def _see_label(github: FakeGitHub, _: Request, name: str) -> Any:
    return github._label(name) if name in github.repository_labels else None


@route("POST", "/labels", "issues: write")
def _make_label(github: FakeGitHub, request: Request) -> Any:
    if request.body["name"] in github.repository_labels:
        return Answer(422, CONFLICT)
    github.repository_labels[request.body["name"]] = request.body
    return Answer(201, github._label(request.body["name"]))


@route("DELETE", "/labels/{name}", "issues: write")
def _drop_label(github: FakeGitHub, _: Request, name: str) -> Any:
    return Answer(204) if github.repository_labels.pop(name, None) else None


@route("GET", "/pages", "pages: read")
def _pages(github: FakeGitHub, _: Request) -> Any:
    kept = github.settings.get("/pages")
    return kept and example("page") | kept


@route("POST", "/pages", "pages: write")
def _make_pages(github: FakeGitHub, request: Request) -> Any:
    github.settings["/pages"] = request.body
    return Answer(201, _pages(github, request))


route("PUT", "/pages", "pages: write")(lambda hub, asked: _keep(hub, "/pages", asked.body))
route("DELETE", "/pages", "pages: write")(lambda hub, _: _drop(hub, "/pages"))


def _numbered(github: FakeGitHub, kind: str) -> list[Json]:
    return [one for path, one in github.settings.items() if path.startswith(f"{kind}/")]


def _make(github: FakeGitHub, kind: str, body: Json) -> Answer:
    number = github.next_id()
    github.settings[f"{kind}/{number}"] = example(EXAMPLES[kind]) | body | {"id": number}
    return Answer(201, github.settings[f"{kind}/{number}"])


def _edit(github: FakeGitHub, kind: str, number: int, body: Json) -> Json:
    github.settings[f"{kind}/{number}"] |= body
    return github.settings[f"{kind}/{number}"]


EXAMPLES = {"/rulesets": "repository-ruleset", "/runner-groups": "runner-group"}

GROUPS = "/orgs/{org}/actions/runner-groups"
ONE = f"{GROUPS}/{{runner_group_id}}"
BELONGS = f"{ONE}/repositories"

route("GET", "/rulesets", ADMIN)(lambda hub, asked: hub._page(asked, _numbered(hub, "/rulesets")))
route("POST", "/rulesets", ADMIN)(lambda hub, asked: _make(hub, "/rulesets", {"bypass_actors": []} | asked.body))
route("GET", "/rulesets/{ruleset_id}", ADMIN)(lambda hub, _, ruleset_id: hub.settings.get(f"/rulesets/{ruleset_id}"))
route("PUT", "/rulesets/{ruleset_id}", ADMIN)(
    lambda hub, asked, ruleset_id: _edit(hub, "/rulesets", ruleset_id, asked.body)
)
route("DELETE", "/rulesets/{ruleset_id}", ADMIN)(lambda hub, _, ruleset_id: _drop(hub, f"/rulesets/{ruleset_id}"))


@route("GET", GROUPS, RUNNERS)
def _groups(github: FakeGitHub, request: Request, org: str) -> Any:  # noqa: ARG001 (the route's)
    return github._page(request, _numbered(github, "/runner-groups"), "runner_groups")


@route("POST", GROUPS, RUNNERS)
def _make_group(github: FakeGitHub, request: Request, org: str) -> Any:  # noqa: ARG001 (the route's)
    return _make(github, "/runner-groups", request.body)


@route("GET", ONE, RUNNERS)
def _group(github: FakeGitHub, _: Request, org: str, runner_group_id: int) -> Any:  # noqa: ARG001 (the route's)
    return github.settings.get(f"/runner-groups/{runner_group_id}")


@route("PATCH", ONE, RUNNERS)
def _edit_group(github: FakeGitHub, request: Request, org: str, runner_group_id: int) -> Any:  # noqa: ARG001
    return _edit(github, "/runner-groups", runner_group_id, request.body)


@route("DELETE", ONE, RUNNERS)
def _drop_group(github: FakeGitHub, _: Request, org: str, runner_group_id: int) -> Any:  # noqa: ARG001
    return _drop(github, f"/runner-groups/{runner_group_id}")


@route("GET", BELONGS, RUNNERS)
def _members(github: FakeGitHub, request: Request, org: str, runner_group_id: int) -> Any:  # noqa: ARG001
    like = example("minimal-repository-paginated")["repositories"][0]
    known = github.settings.get(f"/members/{runner_group_id}", {})
    return github._page(request, [like | {"id": int(number)} for number in known], "repositories")


@route("PUT", f"{BELONGS}/{{repository_id}}", RUNNERS)
def _join(github: FakeGitHub, _: Request, org: str, runner_group_id: int, repository_id: int) -> Any:  # noqa: ARG001
    return _keep(github, f"/members/{runner_group_id}", {str(repository_id): True})


@route("DELETE", f"{BELONGS}/{{repository_id}}", RUNNERS)
def _leave(github: FakeGitHub, _: Request, org: str, runner_group_id: int, repository_id: int) -> Any:  # noqa: ARG001
    github.settings[f"/members/{runner_group_id}"].pop(str(repository_id))
    return Answer(204)
