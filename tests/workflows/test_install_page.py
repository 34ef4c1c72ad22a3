"""docs/install.md, done as it says: its commands run under bash, in order, with a gh that asks GitHub's description."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from markdown_it import MarkdownIt

from kernelgate.bench.build import library
from kernelgate.ci.commands.setup import file_of
from kernelgate.ci.github import description
from kernelgate.ci.github.check_run import CHECK_NAME
from kernelgate.ci.judge import completeness
from kernelgate.ci.policy import policy
from tests.fakes import github_settings
from tests.fakes.github_server import FakeGitHub
from tests.miniature import ENVIRONMENT, git
from tests.processes import program
from tests.workflows import gh
from tests.workflows.documents import HOME_REPOSITORY, ROOT, workflows
from tests.workflows.repository import Change, Repository

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("install page")]
"""One process does what the page says, once."""

PAGE = (ROOT / "docs/install.md").read_text("utf-8")
[PUBLISHED] = re.findall(r"gh repo fork (\S+)", PAGE)
OWN, FORK = "my-org/my-kernels", "my-org/kernelgate"
OWN_ALONE = "A kernel in a repository of its own"
"""The section for those whose kernel is not in the fork."""


def commands(page: str) -> dict[str, list[str]]:
    """{heading: the commands below it}: the page's indented blocks."""
    found: dict[str, list[str]] = {}
    tokens = MarkdownIt().parse(page)
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before and before.type == "heading_open":
            found[token.content] = []
        elif token.type == "code_block":
            found[list(found)[-1]].append(token.content)
    return found


@dataclass(frozen=True)
class CommandDone:
    """What came of doing all that the page says."""

    repository: str
    tree: Path
    """The clone of it that one ends up in."""
    fork: Path
    requests: list[dict[str, Any]]
    settings: dict[str, Any]
    """What GitHub keeps of it."""


def origin(folder: Path, name: str, change: Change) -> None:
    """A repository on the platform: this one's files, changed."""
    made = Repository(folder / "made" / name)
    made.change_main(change)
    (folder / "origins" / name).parent.mkdir(parents=True, exist_ok=True)
    made.origin.rename(folder / "origins" / f"{name}.git")


def as_published(tree: Path) -> None:
    """In a fork these files name the fork, and the page says what they named before."""
    for file in [*(tree / ".github").rglob("*.yml"), *(tree / "docs/caller").iterdir()]:
        file.write_text(file.read_text("utf-8").replace(f"{HOME_REPOSITORY}/", f"{PUBLISHED}/"), "utf-8")


def a_kernel_alone(tree: Path) -> None:
    """Its sources and its card, as somebody has them who has read docs/cards.md."""
    for file in tree.iterdir():
        if file.is_dir() and file.name not in (".git", ".ci", "csrc"):
            rmtree(file)
    for file in (tree / ".ci").iterdir():
        if file.name != "kernels":
            rmtree(file) if file.is_dir() else file.unlink()


def administered(hub: FakeGitHub) -> None:
    """As GitHub has the repository once its workflows were pushed."""
    hub.admin, hub.permissions, hub.settings = True, dict(github_settings.RIGHTS), copy.deepcopy(github_settings.BEGIN)
    folder = ROOT / ("docs/caller" if hub.repository == OWN else ".github/workflows")
    for file in folder.glob("*.yml"):
        content = file.read_text("utf-8").replace(f"{HOME_REPOSITORY}/", f"{FORK}/")
        hub.files["main", f".github/workflows/{file.name}"] = content.encode()


def walk(folder: Path, repository: str, page: str = PAGE) -> CommandDone:
    """Does what the page says, from an empty folder, for a kernel in `repository`."""
    origin(folder, PUBLISHED, as_published)
    origin(folder, OWN, a_kernel_alone)
    program(folder / "bin/gh", f'exec {sys.executable} {Path(gh.__file__)} "$@"')
    # What `make env` makes, in a folder that is not this one.
    verb = Path(sys.executable).with_name("kernelgate")
    program(folder / "bin/make", f'test "$*" = env && mkdir -p .venv/bin && ln -s {verb} .venv/bin/')
    blocks = [
        block for heading, each in commands(page).items() if repository == OWN or heading != OWN_ALONE for block in each
    ]
    script = "\n".join(["set -euo pipefail", *blocks, "pwd > ../ended"])
    assert f"REPO={OWN}" in script
    work = folder / "work"
    work.mkdir()
    told = {
        **ENVIRONMENT,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "GH_ORIGINS": str(folder / "origins"),
        "GH_REQUESTS": str(folder / "requests"),
    }
    words = ["bash", "-c", script.replace(f"REPO={OWN}", f"REPO={repository}")]
    with FakeGitHub(repository) as hub:
        administered(hub)
        told |= {"GITHUB_API_URL": hub.url, "GH_TOKEN_TO_SHOW": hub.token}
        done = subprocess.run(
            words, cwd=work, env=told, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr
    requests = [json.loads(line) for line in (folder / "requests").read_text("utf-8").splitlines()]
    return CommandDone(
        repository, Path((work / "ended").read_text("utf-8").strip()), work / "kernelgate", requests, hub.settings
    )


@pytest.fixture(scope="module", params=[OWN, FORK])
def done(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CommandDone:
    return walk(tmp_path_factory.mktemp("install"), request.param)


def test_the_repository_is_set_up_and_the_group_admits_the_forks_workflow(done: CommandDone) -> None:
    """tests/ci/test_setup_verb.py says what each setting is."""
    [group] = [one for path, one in done.settings.items() if path.startswith("/runner-groups/")]
    assert group["selected_workflows"] == [f"{FORK}/.github/workflows/measure.yml@refs/heads/main"]
    rules = [rule for path, one in done.settings.items() if path.startswith("/rulesets/") for rule in one["rules"]]
    [rule] = [rule for rule in rules if rule["type"] == "required_status_checks"]
    asked = {check["context"] for check in rule["parameters"]["required_status_checks"]}
    jobs = {job["name"] for each in workflows(done.tree).values() for job in each.jobs.values()}
    assert asked == {CHECK_NAME} | ({"checks"} & jobs)
    assert ("checks" in asked) == (done.repository == FORK)
    kept = json.loads((done.tree / file_of(done.repository)).read_text("utf-8"))
    assert kept["before"]["approval of forks' workflows"] == {"approval_policy": "first_time_contributors"}

    # An organisation's settings ask for admin:org, a push of workflows for workflow.
    assert done.requests[0] == {"scopes": ["admin:org", "workflow"]}


def test_what_is_pushed_calls_the_fork_and_the_bot_takes_the_first_pull_request(done: CommandDone) -> None:
    known = [*workflows(done.fork).values(), *workflows(done.tree).values()]
    called = {job["uses"].rpartition("/")[0] for each in known for job in each.jobs.values() if "uses" in job}
    assert called == {f"{FORK}/.github/workflows"}
    origins = (done.fork, done.tree)
    assert all(git(tree, "rev-parse", "main") == git(tree, "rev-parse", "origin/main") for tree in origins)

    pushed = git(done.tree, "ls-tree", "-r", "--name-only", "origin/main", ".github").split()
    callers = {f".github/workflows/{file.name}" for file in (ROOT / "docs/caller").glob("*.yml")}
    template = ".github/pull_request_template.md"
    assert {template} <= set(pushed)
    if done.repository == OWN:
        assert set(pushed) == {template} | callers
        built = library.read(done.tree / "out/head/attention")
        assert built.manifest.sha == git(done.tree, "rev-parse", "origin/main")

    [pull] = [each["pull"] for each in done.requests if "pull" in each]
    assert pull["repo"] == done.repository
    changed = git(done.tree, "diff", "--name-only", "origin/main", f"origin/{pull['head']}").split()
    assert [file.split("/")[0] for file in changed] == ["csrc"]
    rules = policy.load(done.tree / ".ci/kernelgate.toml").template
    assert (rules.sections == "warn") == (done.repository == OWN)
    said = description.describe(pull["body"], rules, changed)
    assert said.excused is None
    assert not said.filled_by(completeness.SUPPLIES).blocking
