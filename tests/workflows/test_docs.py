"""What docs/security.md, docs/install.md and docs/runner.md say of the workflows is so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from documents import ROOT, workflows
from language import Language

SECURITY, INSTALL, RUNNER = (
    (ROOT / "docs" / name).read_text("utf-8") for name in ("security.md", "install.md", "runner.md")
)
TESTS = "\n".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("test_*.py"))


def test_the_tests_that_the_security_page_names_exist() -> None:
    named = set(re.findall(r"`(test_\w+)", SECURITY))
    assert named
    assert not {name for name in named if f"def {name}(" not in TESTS}
    files = re.findall(r"`((?:tests|\.ci)/[\w/.]+)`", SECURITY)
    assert not [file for file in files if not (ROOT / file).exists()]


def called_workflows() -> list[str]:
    """The workflows that docs/install.md gives to another repository."""
    return re.findall(r"```yaml\n(.*?)```", INSTALL, re.DOTALL)


@pytest.mark.parametrize("text", called_workflows())
def test_github_reads_the_workflows_to_copy(text: str, language: Language) -> None:
    called = {each.path: each.text for each in workflows().values()}
    assert language.workflow_errors("caller.yml", text, called) == []


@pytest.mark.parametrize("text", called_workflows())
def test_a_caller_grants_what_the_called_workflow_needs(text: str) -> None:
    """A called workflow can do no more than its caller; GitHub refuses the run where a job asks for more."""
    [job] = yaml.safe_load(text)["jobs"].values()
    called = workflows()[Path(job["uses"].split("@")[0]).stem]
    needed = [right for inner in called.jobs.values() for right in inner["permissions"].items()]
    levels = ["read", "write"]
    assert not [(name, level) for name, level in needed if levels.index(job["permissions"][name]) < levels.index(level)]


def test_the_settings_name_what_the_workflows_use() -> None:
    gate = workflows()["measure"].jobs["measure"]["environment"]["name"]
    for environment in re.findall(r"environments/([\w-]+)", INSTALL):
        assert f"'{environment}'" in gate
    checks = re.findall(r'"context": "([^"]+)"', INSTALL)
    assert checks == [workflows()["check"].jobs["checks"]["name"], _bots_check()]


def _bots_check() -> str:
    from ci.github import CHECK_NAME

    return CHECK_NAME


def test_the_bodies_of_requests_are_json() -> None:
    bodies = re.findall(r"--input - <<'?END'?\n(.*?)\n +END", INSTALL, re.DOTALL)
    assert len(bodies) == 3
    for body in bodies:
        json.loads(re.sub(r"\$\(.*?\)|\$ME", "1", body))


def test_the_files_that_the_runners_page_names_exist() -> None:
    for file in re.findall(r"\.ci/runner/[\w.-]+", RUNNER):
        assert (ROOT / file).exists(), file
    for script in re.findall(r"`([\w-]+\.(?:sh|service))`", RUNNER):
        assert (ROOT / ".ci/runner" / script).exists(), script
