"""What docs/security.md, docs/install.md and docs/runner.md say of the workflows is so."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.workflows import faults
from tests.workflows.documents import ROOT, Workflow, workflows
from tests.workflows.faults import CALLED
from tests.workflows.language import Language
from tests.workflows.test_workflows import ZIZMOR, tool

SECURITY, INSTALL, RUNNER = (
    (ROOT / "docs" / name).read_text("utf-8") for name in ("security.md", "install.md", "runner.md")
)
WORKFLOWS = workflows()
CALLER = ROOT / "docs/caller"
CALLERS = {
    file.stem: Workflow(f".github/workflows/{file.name}", file.read_text("utf-8"))
    for file in sorted(CALLER.glob("*.yml"))
}


# The workflows of docs/caller, which another repository copies.


def called(caller: Workflow) -> Workflow:
    """The reusable workflow that a caller calls."""
    [job] = caller.jobs.values()
    return WORKFLOWS[Path(job["uses"].split("@")[0]).stem]


each_caller = pytest.mark.parametrize("name", CALLERS)


@each_caller
def test_github_reads_the_workflow_to_copy(name: str, language: Language) -> None:
    known = {each.path: each.text for each in WORKFLOWS.values()}
    assert language.workflow_errors(CALLERS[name].path, CALLERS[name].text, known) == []


@each_caller
def test_a_caller_calls_a_workflow_of_the_default_branch(name: str) -> None:
    [job] = CALLERS[name].jobs.values()
    assert job["uses"] == f"{CALLED}{Path(called(CALLERS[name]).path).name}@main"
    assert "workflow_call" in called(CALLERS[name]).triggers


@each_caller
def test_a_caller_grants_what_the_called_workflow_needs_and_no_more(name: str) -> None:
    """A called workflow can do no more than its caller; GitHub refuses the run where a job asks for more."""
    needed = [right for inner in called(CALLERS[name]).jobs.values() for right in inner["permissions"].items()]
    [job] = CALLERS[name].jobs.values()
    assert job["permissions"] == dict(sorted(needed, key=lambda right: right[1] == "write"))


@each_caller
def test_a_caller_starts_when_the_called_workflow_would(name: str) -> None:
    """Its inputs too: a called workflow does not get those of a dispatch, and reads them from the event."""
    own = {event: given for event, given in called(CALLERS[name]).triggers.items() if event != "workflow_call"}
    assert CALLERS[name].triggers == own


def test_report_follows_performance() -> None:
    assert CALLERS["report"].triggers["workflow_run"]["workflows"] == [CALLERS["performance"].content["name"]]


@each_caller
@pytest.mark.parametrize("check", [faults.loose_permissions, faults.secrets, faults.injected])
def test_a_caller_has_no_fault(name: str, check: Callable[[Workflow], Iterator[str]]) -> None:
    assert list(check(CALLERS[name])) == []


def test_zizmor_finds_nothing_in_the_callers() -> None:
    done = tool(*ZIZMOR, *sorted(str(file) for file in CALLER.glob("*.yml")))
    assert done.returncode == 0, done.stdout + done.stderr
    ignored = [
        line.split("# zizmor: ")[1] for each in CALLERS.values() for line in each.text.splitlines() if "zizm" in line
    ]
    assert all(re.fullmatch(r"ignore\[[a-z-]+\] \S.{8,}", each) for each in ignored), ignored


def test_the_policy_that_the_install_page_shows_is_ours() -> None:
    [shown] = re.findall(r"```toml\n(.*?)```", INSTALL, re.DOTALL)
    ours = (ROOT / ".ci/kernelgate.toml").read_text("utf-8")
    assert tomllib.loads(shown)["measure"]["gpus"] == tomllib.loads(ours)["measure"]["gpus"]
