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


route("DELETE", "/environments/{environment_name}", ADMIN)(
    lambda hub, _, environment_name: _drop(hub, f"/environments/{environment_name}")
)


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


def _numbered(
    kind: str, every: str, number: str, verb: str, needs: str, wrap: str | None = None, made: str = "", **more: Any
) -> None:
    """The routes of what has a number of its own. `made`: GitHub's example that one starts from."""
    one = f"{every}/{{{number}}}"

    def listed(hub: FakeGitHub, asked: Request) -> Answer:
        return hub._page(asked, [kept for path, kept in hub.settings.items() if path.startswith(f"{kind}/")], wrap)

    def make(hub: FakeGitHub, asked: Request) -> Answer:
        _id = hub.next_id()
        hub.settings[f"{kind}/{_id}"] = example(made) | more | asked.body | {"id": _id}
        return Answer(201, hub.settings[f"{kind}/{_id}"])

    def edit(hub: FakeGitHub, asked: Request, **named: int) -> Json:
        hub.settings[f"{kind}/{named[number]}"] |= asked.body
        return hub.settings[f"{kind}/{named[number]}"]

    route("GET", every, needs)(listed)
    route("POST", every, needs)(make)
    route("GET", one, needs)(lambda hub, _, **named: hub.settings.get(f"{kind}/{named[number]}"))
    route(verb, one, needs)(edit)
    route("DELETE", one, needs)(lambda hub, _, **named: _drop(hub, f"{kind}/{named[number]}"))


GROUPS = "/orgs/{org}/actions/runner-groups"
BELONGS = f"{GROUPS}/{{runner_group_id}}/repositories"
_numbered("/rulesets", "/rulesets", "ruleset_id", "PUT", ADMIN, made="repository-ruleset", bypass_actors=[])
_numbered("/runner-groups", GROUPS, "runner_group_id", "PATCH", RUNNERS, "runner_groups", "runner-group")


@route("GET", BELONGS, RUNNERS)
def _members(github: FakeGitHub, request: Request, runner_group_id: int) -> Any:
    like = example("minimal-repository-paginated")["repositories"][0]
    known = github.settings.get(f"/members/{runner_group_id}", {})
    return github._page(request, [like | {"id": int(number)} for number in known], "repositories")


@route("PUT", f"{BELONGS}/{{repository_id}}", RUNNERS)
def _join(github: FakeGitHub, _: Request, runner_group_id: int, repository_id: int) -> Any:
    return _keep(github, f"/members/{runner_group_id}", {str(repository_id): True})


@route("DELETE", f"{BELONGS}/{{repository_id}}", RUNNERS)
def _leave(github: FakeGitHub, _: Request, runner_group_id: int, repository_id: int) -> Any:
    github.settings[f"/members/{runner_group_id}"].pop(str(repository_id))
    return Answer(204)
