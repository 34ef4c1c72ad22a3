"""What docs/security.md and docs/install.md say of the workflows is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.workflows import faults
from tests.workflows.documents import ROOT, Workflow, workflows
from tests.workflows.faults import CALLED
from tests.workflows.language import Language

SECURITY, INSTALL = ((ROOT / "docs" / name).read_text("utf-8") for name in ("security.md", "install.md"))
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


@pytest.mark.parametrize("name", CALLERS)
def test_a_workflow_to_copy_calls_one_of_the_default_branch_as_it_asks(name: str, language: Language) -> None:
    caller, known = CALLERS[name], {each.path: each.text for each in WORKFLOWS.values()}
    assert language.workflow_errors(caller.path, caller.text, known) == []
    assert list(faults.secrets(caller)) == []
    [job] = caller.jobs.values()
    assert job["uses"] == f"{CALLED}{Path(called(caller).path).name}@main"
    # A called workflow can do no more than its caller; GitHub refuses the run where a job asks for more.
    needed = [right for inner in called(caller).jobs.values() for right in inner["permissions"].items()]
    assert job["permissions"] == dict(sorted(needed, key=lambda right: right[1] == "write"))
    # Its inputs too: a called workflow does not get those of a dispatch, and reads them from the event.
    assert "workflow_call" in called(caller).triggers
    assert caller.triggers == {key: given for key, given in called(caller).triggers.items() if key != "workflow_call"}
    if name == "report":
        assert caller.triggers["workflow_run"]["workflows"] == [CALLERS["performance"].content["name"]]


def test_the_security_page_names_each_job_that_may_write() -> None:
    """Callers of other workflows pass on what these ask for."""
    rows = re.findall(r"^\| (\*\w+\*(?:, \*\w+\*)*) \|.*\| (.+) \|$", SECURITY, re.MULTILINE)
    told = {name: held != "nothing" for names, held in rows for name in re.findall(r"\w+", names)}
    jobs = {name: job for each in WORKFLOWS.values() for name, job in each.jobs.items() if "uses" not in job}
    assert told.keys() <= jobs.keys()
    writing = {name for name, job in jobs.items() if "write" in job["permissions"].values()}
    assert {name for name, writes in told.items() if writes} == writing
