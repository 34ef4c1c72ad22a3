"""Workflows and actions as act 0.2.89 takes them: a copy, changed by the substitutions below and by nothing else."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.engine.stand_in import KNOWN
from tests.workflows.documents import Workflow, actions, steps, workflows

Document = dict[str, Any]
GATE = "kernelgate-engine/environment@v0"
"""The action that stands where a job waits for its environment."""
WAITS = "environment-of-"
"""Begins the name of the job in which it stands."""


class UnknownInputError(Exception):
    """A step gives an action an input that its stand-in would have ignored."""


def prepare(document: Document, repository: str, sha: str) -> Document:
    """A copy for act of a workflow or a composite action that lies in `repository` at `sha`."""
    prepared = copy.deepcopy(document)
    for substitute in (_gate, _queue, _machine):
        substitute(prepared)
    known = {"${{ job.workflow_repository }}": repository, "${{ job.workflow_sha }}": sha}
    filled: Document = _replaced(prepared, lambda text: known.get(text, text))
    for _, step in steps(filled):
        refuse_unknown_inputs(step)
    return filled


def prepare_tree(tree: Path, repository: str, sha: str) -> None:
    """Prepares the workflows and actions of a checkout, in their place."""
    for document in [*workflows(tree).values(), *actions(tree).values()]:
        write(tree / document.path, prepare(document.content, repository, sha))


def write(path: Path, document: Document) -> None:
    path.write_text(yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False, width=1000), "utf-8")


def put_aside(tree: Path, path: str, ended: Mapping[str, Mapping[str, str]], only: Collection[str]) -> None:
    """In place of each job that is not to run, one that only puts out what it did before.

    `ended`: the jobs that succeeded before, with the outputs of their steps. `only`: jobs that run; empty for all.
    """
    document = Workflow(path, (tree / path).read_text("utf-8")).content
    for name, job in document["jobs"].items():
        inside = {full: each for full, each in ended.items() if full.startswith(f"{job['name']} / ")}
        if inside or (only and name not in only):
            aside = {"name": job["name"], "needs": job.get("needs", []), "runs-on": "ubuntu-24.04"}
            document["jobs"][name] = {**aside, "outputs": _outputs(tree, job, inside), "steps": [{"run": "true"}]}
    write(tree / path, document)


def _outputs(tree: Path, caller: Document, ended: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Of a call whose jobs ended: an output of a step of a job for each `${{ jobs.JOB.outputs.NAME }}`."""
    found: dict[str, str] = {}
    if ended:
        called = workflows(tree)[Path(caller["uses"].split("@")[0]).stem]
        for output, each in called.triggers["workflow_call"]["outputs"].items():
            job, inner = re.findall(r"jobs\.([\w-]+)\.outputs\.([\w-]+)", each["value"])[0]
            [step] = re.findall(r"steps\.(\S+)", called.jobs[job]["outputs"][inner])
            found[output] = ended.get(f"{caller['name']} / {called.jobs[job]['name']}", {}).get(step, "")
    return found


def refuse_unknown_inputs(step: Document) -> None:
    owner, _, name = step.get("uses", "").split("@")[0].partition("/")
    if owner == "actions" and (unknown := sorted(step.get("with", {}).keys() - KNOWN[name])):
        raise UnknownInputError(f"the stand-in for actions/{name} does not know {', '.join(unknown)}")


# The substitutions ----------------------------------------------------------------------------------------------------


def _gate(document: Document) -> None:
    """act holds no job for an approval: a job of its own before each that names an environment fails while that is
    held, and the other is skipped."""
    jobs = document.get("jobs", {})
    for name in [name for name, job in jobs.items() if "environment" in job]:
        job = jobs[name]
        step = {"uses": GATE, "with": {"name": job.pop("environment")["name"]}}
        needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
        gate = {"name": job["name"], "needs": needs, "runs-on": "ubuntu-24.04", "steps": [step]}
        if "if" in job:  # decided once, before it waits
            gate["if"], job["if"] = job["if"], f"needs.{WAITS}{name}.result == 'success'"
        jobs[WAITS + name] = gate
        job["needs"] = [*needs, WAITS + name]


def _queue(document: Document) -> None:
    """act does not know the key concurrency.queue; it runs one workflow at a time."""
    for place in [document, *document.get("jobs", {}).values()]:
        place.get("concurrency", {}).pop("queue", None)


def _machine(document: Document) -> None:
    """act's runner context has no environment: each job says in a variable which runner it has. Nor does it know `$/`:
    the workspace holds the same commit's actions."""
    for job in document.get("jobs", {}).values():
        if "steps" in job:
            hosted = "self-hosted" not in str(job["runs-on"]) or "ubuntu" in str(job["runs-on"])
            job["env"] = {**job.get("env", {}), "RUNNER_ENVIRONMENT": "github-hosted" if hosted else "self-hosted"}
    names = {"runner.environment": "env.RUNNER_ENVIRONMENT", "$/.github/": "./.github/"}
    for old, new in names.items():
        document.update(_replaced(document, lambda text, old=old, new=new: text.replace(old, new)))


def _replaced(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _replaced(each, change) for key, each in value.items()}
    return [_replaced(each, change) for each in value] if isinstance(value, list) else value
