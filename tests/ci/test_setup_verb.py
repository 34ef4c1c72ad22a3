"""`kernelgate setup` against a GitHub that keeps what it is told, and holds requests against GitHub's description."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from kernelgate.ci.commands.setup import file_of
from tests.called import EndsWith
from tests.fakes import github_settings
from tests.fakes.github_server import FakeGitHub
from tests.fakes.github_settings import BEGIN
from tests.workflows.documents import ROOT, workflows

REPOSITORY = "octo-org/kernels"
JUDGE = "octo-org/kernelgate"
ME = 1
"""The user of GitHub's own example."""


@pytest.fixture
def hub(signed_in: FakeGitHub) -> FakeGitHub:
    """A repository of an organisation, whose workflows call kernelgate by a tag, as `kernelgate init` writes them."""
    signed_in.admin, signed_in.permissions = True, dict(github_settings.RIGHTS)
    signed_in.settings = copy.deepcopy(BEGIN)
    called = (ROOT / "docs/caller/performance.yml").read_text("utf-8").replace("kernelgate/kernelgate", JUDGE)
    signed_in.files["main", ".github/workflows/performance.yml"] = called.replace(".yml@main", ".yml@v0").encode()
    return signed_in


def rules(hub: FakeGitHub) -> dict[str, dict[str, Any]]:
    """The parameters of each rule, by the ruleset's name and its type."""
    sets = [one for path, one in hub.settings.items() if path.startswith("/rulesets/")]
    return {f"{one['name']}: {rule['type']}": rule["parameters"] for one in sets for rule in one["rules"]}


def left(hub: FakeGitHub) -> dict[str, Any]:
    """All settings, without the members of a group that was removed."""
    return {path: one for path, one in hub.settings.items() if not path.startswith("/members/")}


def test_everything_is_set_once_and_the_second_time_there_is_nothing_to_do(
    hub: FakeGitHub, ends_with: EndsWith
) -> None:
    said = ends_with(0, "setup", REPOSITORY, "--yes")
    assert 'is:      default_workflow_permissions: "write", can_approve_pull_request_reviews: false' in said.err
    assert 'will be: default_workflow_permissions: "read", can_approve_pull_request_reviews: true' in said.err
    made = hub.settings["/actions/permissions/workflow"]
    assert made == {"default_workflow_permissions": "read", "can_approve_pull_request_reviews": True}
    approval = hub.settings["/actions/permissions/fork-pr-contributor-approval"]
    assert approval == {"approval_policy": "all_external_contributors"}
    assert hub.settings["/environments/kernelgate-forks"]["reviewers"] == [{"type": "User", "id": ME}]
    gate = workflows()["measure"].jobs["measure"]["environment"]["name"]
    environments = [path for path in hub.settings if path.startswith("/environments/")]
    assert len(environments) == 2
    assert all(f"'{path.removeprefix('/environments/')}'" in gate for path in environments)
    assert {name for name in hub.repository_labels if name.startswith("performance: ")} == {
        f"performance: {end}" for end in ("improved", "regressed", "unchanged", "accepted")
    }
    required = rules(hub)["kernelgate: required_status_checks"]["required_status_checks"]
    assert required == [{"context": "kernelgate verdict"}]
    assert rules(hub)["kernelgate merge queue: merge_queue"]["grouping_strategy"] == "ALLGREEN"
    [(path, group)] = [(path, one) for path, one in hub.settings.items() if path.startswith("/runner-groups/")]
    assert (group["restricted_to_workflows"], group["visibility"]) == (True, "selected")
    assert group["selected_workflows"] == [f"{JUDGE}/.github/workflows/measure.yml@refs/tags/v0"]
    number = path.rpartition("/")[2]
    assert len(hub.settings[f"/members/{number}"]) == 1
    assert "/pages" not in hub.settings
    assert f"ORGANISATION=octo-org\nRUNNER_GROUP_ID={number}\nREPOSITORIES={REPOSITORY}" in said.out

    writes = hub.writes()
    assert f"{REPOSITORY}: nothing to do" in ends_with(0, "setup", REPOSITORY, "--yes").out
    assert hub.writes() == writes


def test_undo_restores_what_was_there_whatever_it_was(hub: FakeGitHub, ends_with: EndsWith) -> None:
    """Among it what somebody had made under the same names."""
    forks = {"wait_timer": 30, "deployment_branch_policy": None, "reviewers": [{"type": "User", "id": 7}]}
    hub.settings["/environments/kernelgate-forks"] = forks
    hub.repository_labels["performance: improved"] = {"name": "performance: improved", "color": "ededed"}
    for name in ("measure.yml", "check.yml"):  # the kernel lies in the fork of kernelgate itself
        hub.files["main", f".github/workflows/{name}"] = b"name: x"
    hub.settings["/pages"] = {"build_type": "legacy", "source": {"branch": "gh-pages", "path": "/"}}
    before, labels = copy.deepcopy(hub.settings), copy.deepcopy(hub.repository_labels)
    assert str(file_of(REPOSITORY)) in ends_with(0, "setup", REPOSITORY, "--yes").out
    kept = hub.settings["/environments/kernelgate-forks"]
    assert kept["wait_timer"] == 30
    assert kept["reviewers"] == forks["reviewers"], "who reviews forks already stays the reviewer"
    contexts = rules(hub)["kernelgate: required_status_checks"]["required_status_checks"]
    assert contexts == [{"context": "kernelgate verdict"}, {"context": "checks"}]
    assert hub.settings["/pages"]["build_type"] == "workflow"

    ends_with(0, "setup", REPOSITORY, "--undo", "--yes")
    assert left(hub) == before
    assert {name: one["color"] for name, one in hub.repository_labels.items()} == {
        name: one["color"] for name, one in labels.items()
    }
    assert not file_of(REPOSITORY).exists()
    assert "nothing to do" in ends_with(0, "setup", REPOSITORY, "--undo").out


def test_without_a_yes_nothing_is_changed(hub: FakeGitHub, ends_with: EndsWith) -> None:
    told = json.loads(ends_with(0, "setup", REPOSITORY, "--json").out)
    assert {one["changed"] for one in told["changes"]} == {False}
    assert "runner group of octo-org" in {one["setting"] for one in told["changes"]}
    assert (hub.writes(), told["before"], hub.settings) == ([], None, BEGIN)


def test_a_person_gets_neither_a_merge_queue_nor_a_runner_group(hub: FakeGitHub, ends_with: EndsWith) -> None:
    hub.owner_type = "User"
    said = ends_with(0, "setup", REPOSITORY, "--yes").out
    assert not any(path.startswith("/runner-groups") for path in hub.settings)
    assert {name.partition(":")[0] for name in rules(hub)} == {"kernelgate"}
    assert f"ORGANISATION=\nRUNNER_GROUP_ID=\nREPOSITORIES={REPOSITORY}" in said


def test_a_right_that_is_missing_is_named_and_what_was_done_is_kept(hub: FakeGitHub, ends_with: EndsWith) -> None:
    del hub.permissions["organization_self_hosted_runners"]
    said = ends_with(3, "setup", REPOSITORY, "--yes").err.splitlines()[-1]
    assert said.startswith("kernelgate: ")
    assert said.endswith("the token needs the organisation permission “Self-hosted runners: read and write”")
    assert file_of(REPOSITORY).exists()
    ends_with(3, "setup", REPOSITORY, "--undo", "--yes")
    hub.permissions["organization_self_hosted_runners"] = "write"
    ends_with(0, "setup", REPOSITORY, "--undo", "--yes")
    assert left(hub) == BEGIN


@pytest.mark.parametrize(
    ("words", "change", "code", "said"),
    [
        (["kernels"], None, 64, "'kernels' is no repository: name it as OWNER/NAME"),
        (["octo-org/other"], None, 64, "there is no repository octo-org/other, or the token does not see it"),
        ([REPOSITORY], lambda hub: setattr(hub, "admin", False), 3, "only an administrator of octo-org/kernels"),
        ([REPOSITORY], lambda hub: hub.files.clear(), 3, "run `kernelgate init` there and push"),
        ([REPOSITORY], lambda _: file_of(REPOSITORY).write_text("{}"), 64, "is not what `kernelgate setup` writes"),
    ],
    ids=["no name", "no repository", "no administrator", "no workflows", "another file"],
)
def test_what_keeps_it_from_beginning_is_one_sentence(
    hub: FakeGitHub, ends_with: EndsWith, words: list[str], change: Any, code: int, said: str
) -> None:
    if change:
        change(hub)
    err = ends_with(code, "setup", *words, "--yes").err
    assert (said in err, err.count("\n")) == (True, 1)
    assert hub.writes() == []


def test_a_restriction_that_github_does_not_keep_is_an_error(hub: FakeGitHub, ends_with: EndsWith) -> None:
    """As where an organisation's plan has none: the group would admit every workflow."""

    def forget() -> None:
        [group] = [one for path, one in hub.settings.items() if path.startswith("/runner-groups/")]
        group["restricted_to_workflows"] = False

    hub.fault("POST", "/orgs/.*/runner-groups", headers={"X-Answered": "yes"}, after=forget)
    said = "runner group of octo-org: GitHub took the change, and keeps restricted_to_workflows: false"
    assert said in ends_with(3, "setup", REPOSITORY, "--yes").err


@pytest.mark.slow
def test_an_answer_that_was_lost_changes_nothing_twice(hub: FakeGitHub, ends_with: EndsWith) -> None:
    hub.fault("POST", "/rulesets", drop="after")
    hub.fault("POST", "/labels", drop="after")
    ends_with(0, "setup", REPOSITORY, "--yes")
    names = [one["name"] for path, one in hub.settings.items() if path.startswith("/rulesets/")]
    assert sorted(names) == ["kernelgate", "kernelgate merge queue"]


def test_what_the_organisation_forbids_is_said_at_once(hub: FakeGitHub, ends_with: EndsWith) -> None:
    hub.fault("PUT", "/actions/permissions/workflow", times=9, status=409, message="Conflict")
    said = "workflow permissions: GitHub answers 409, as where the organisation forbids the setting"
    assert said in ends_with(3, "setup", REPOSITORY, "--yes").err
    assert hub.faults[0].times == 8, "it is not asked again"
