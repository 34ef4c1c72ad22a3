"""The executor of the workflows does what GitHub does; the workflows under test rely on it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from tests.fakes.github_server import FakeGitHub, event
from tests.workflows.documents import Workflow
from tests.workflows.language import Language
from tests.workflows.repository import Repository
from tests.workflows.runner import HOME_REPOSITORY, Platform, WorkflowRun, starts

Steps = list[dict[str, Any]]
CHECKOUT = {"uses": "actions/checkout@v7", "with": {"persist-credentials": False}}


class ExecutorBench:
    """Runs a job of the steps that a test gives."""

    def __init__(self, folder: Path, server: FakeGitHub, language: Language) -> None:
        self.server = server
        self.repository = Repository(folder / "own")
        self.platform = Platform({HOME_REPOSITORY: self.repository.origin}, server, language, folder)

    def run(
        self, steps: Steps, action: dict[str, Any] | None = None, trigger: Any = "push", **more: Any
    ) -> WorkflowRun:
        def write(tree: Path) -> None:
            job = {"runs-on": "ubuntu-24.04", "permissions": {}, "steps": steps}
            self._write(tree / ".github/workflows/tried.yml", {"on": trigger, "jobs": {"tried": job}})
            if action:
                self._write(tree / ".github/actions/tried/action.yml", {"runs": {"using": "composite"}, **action})

        self.repository.change_main(write)
        main = self.repository.main
        return self.platform.start("tried.yml", "push", event("push"), sha=main, ref="refs/heads/main", **more)

    def _write(self, file: Path, content: dict[str, Any]) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")

    def blob(self, artifact: int) -> tuple[bytes, str]:
        answer = requests.get(f"{self.server.url}/blob/{artifact}?sig=x", timeout=10)
        return answer.content, answer.headers["Content-Type"]


@pytest.fixture
def bench(tmp_path: Path, language: Language) -> Iterator[ExecutorBench]:
    with FakeGitHub(HOME_REPOSITORY) as server:
        yield ExecutorBench(tmp_path, server, language)


def upload(path: str, **more: Any) -> dict[str, Any]:
    return {
        "id": "up",
        "uses": "actions/upload-artifact@v7",
        "with": {"path": path, "if-no-files-found": "error"} | more,
    }


WRITE = {"run": "mkdir out && echo one > out/one.html && echo two > out/two.html"}
SAY = {"if": "always()", "name": "say", "run": 'echo "$WORDS"', "env": {"WORDS": "${{ toJSON(steps.up.outputs) }}"}}


def test_an_artifact_is_a_zip_file_with_a_page_of_its_own(bench: ExecutorBench) -> None:
    run = bench.run([WRITE, upload("out", name="both"), SAY])
    [artifact] = bench.server.artifacts.values()
    data, kind = bench.blob(artifact["id"])
    assert kind == "application/zip"
    assert zipfile.ZipFile(io.BytesIO(data)).namelist() == ["one.html", "two.html"]
    page = f"https://github.com/{HOME_REPOSITORY}/actions/runs/{run.id}/artifacts/{artifact['id']}"
    assert f'"artifact-url": "{page}"' in run.log
    assert f'"artifact-id": "{artifact["id"]}"' in run.log


def test_one_file_can_be_kept_as_it_is(bench: ExecutorBench) -> None:
    bench.run([WRITE, upload("out/one.html", name="ignored", archive=False)])
    [artifact] = bench.server.artifacts.values()
    assert artifact["name"] == "one.html"
    assert bench.blob(artifact["id"]) == (b"one\n", "application/octet-stream")


def test_several_files_cannot(bench: ExecutorBench) -> None:
    run = bench.run([WRITE, upload("out", archive=False)])
    assert run.conclusion == "failure"
    assert bench.server.artifacts == {}


def test_a_name_is_taken_once_in_an_attempt_and_again_in_the_next(bench: ExecutorBench) -> None:
    steps = [WRITE, upload("out", name="both"), SAY]
    assert bench.run([*steps, upload("out", name="both")]).conclusion == "failure"
    first = bench.run(steps)
    second = bench.run([*steps, {"run": 'echo "attempt $GITHUB_RUN_ATTEMPT"'}], again=first)
    assert (second.id, second.conclusion) == (first.id, "success")
    assert "\nattempt 2\n" in second.log
    assert bench.server.runs[first.id]["run_attempt"] == 2
    [job] = bench.server.jobs[first.id]
    assert len(job["steps"]) == 4
    kept = [one for one in bench.server.artifacts.values() if one["workflow_run"]["id"] == first.id]
    assert [one["name"] for one in kept] == ["both", "both"], "GitHub lists those of every attempt"


@pytest.mark.parametrize("ref", ["main", "refs/heads/main", ""])
def test_a_checkout_takes_branches_and_parts(bench: ExecutorBench, ref: str) -> None:
    given = {"persist-credentials": False, "ref": ref, "path": "rules", "sparse-checkout": ".ci\n"}
    run = bench.run([{"uses": "actions/checkout@v7", "with": given}, {"run": "cd rules; git rev-parse HEAD; ls -A"}])
    assert run.conclusion == "success", run.log
    assert f"\n{bench.repository.main}\n" in run.log
    found = run.jobs["tried"].steps[1].log.split()
    assert ".ci" in found
    assert "README.md" in found, "files at the top are always there"
    assert "csrc" not in found


@pytest.mark.parametrize(("depth", "commits"), [({}, "1"), ({"fetch-depth": 0}, "2")])
def test_a_checkout_brings_history_only_where_it_is_asked_for(
    bench: ExecutorBench, depth: dict[str, int], commits: str
) -> None:
    given = {"persist-credentials": False, **depth}
    run = bench.run([{**CHECKOUT, "with": given}, {"run": "echo commits: $(git rev-list --count HEAD)"}])
    assert f"\ncommits: {commits}\n" in run.log


def test_a_checkout_of_what_is_not_there_fails(bench: ExecutorBench) -> None:
    run = bench.run([{**CHECKOUT, "with": {"persist-credentials": False, "ref": "nowhere"}}])
    assert run.conclusion == "failure"


ACTION: dict[str, Any] = {
    "inputs": {"word": {"description": "x", "default": "unsaid"}, "at": {"description": "x", "required": True}},
    "outputs": {"said": {"value": "${{ steps.inner.outputs.said }}"}},
    "runs": {
        "using": "composite",
        "steps": [
            {"uses": "actions/checkout@v7", "with": {"persist-credentials": False, "path": "${{ inputs.at }}"}},
            {
                "id": "inner",
                "shell": "bash",
                "run": 'ls "$AT/Makefile"; echo "said=$WORD $SHA" >> "$GITHUB_OUTPUT"; echo LEFT=here >> "$GITHUB_ENV"',
                "env": {"WORD": "${{ inputs.word }}", "AT": "${{ inputs.at }}", "SHA": "${{ job.workflow_sha }}"},
            },
        ],
    },
}
ASKED = {"run": 'echo "[$SAID] [$INNER] $LEFT"', "env": {"SAID": "${{ steps.act.outputs.said }}"}}
ASKED["env"]["INNER"] = "${{ steps.inner.outputs.said }}"


@pytest.mark.parametrize("uses", ["./.github/actions/tried", "$/.github/actions/tried"])
@pytest.mark.parametrize(("given", "word"), [({}, "unsaid"), ({"word": "hello"}, "hello")])
def test_a_composite_action_has_inputs_and_uses_actions(
    bench: ExecutorBench, uses: str, given: dict[str, str], word: str
) -> None:
    checkout = [CHECKOUT] if uses.startswith("./") else []
    act = {"id": "act", "uses": uses, "with": {"at": "there", **given}}
    run = bench.run([*checkout, act, ASKED], ACTION)
    assert run.conclusion == "success", run.log
    assert f"[{word} {bench.repository.main}] [] here" in run.log


def test_a_composite_action_that_fails_can_be_tolerated(bench: ExecutorBench) -> None:
    act = {"id": "act", "uses": "$/.github/actions/tried"}
    broken = {
        "runs": {
            "using": "composite",
            "steps": [{"shell": "bash", "run": "false"}, {"shell": "bash", "run": "echo on"}],
        }
    }
    after = {"run": "echo $HOW", "env": {"HOW": "${{ steps.act.outcome }} and ${{ steps.act.conclusion }}"}}
    assert bench.run([act, after], broken).conclusion == "failure"
    run = bench.run([{**act, "continue-on-error": True}, after], broken)
    assert run.conclusion == "success"
    assert "\nfailure and success\n" in run.log
    assert "\non\n" not in run.log


def test_a_pipe_may_fail_unless_bash_is_asked_for(bench: ExecutorBench) -> None:
    """GitHub starts a `run` as `bash -e`, and with `pipefail` only where it says `shell: bash`."""
    assert bench.run([{"run": "false | cat"}]).conclusion == "success"
    assert bench.run([{"run": "false | cat", "shell": "bash"}]).conclusion == "failure"


def test_an_event_that_a_workflow_does_not_name_cannot_start_it(bench: ExecutorBench) -> None:
    assert bench.run([{"run": "true"}], trigger=["push", "pull_request"]).conclusion == "success"
    with pytest.raises(AssertionError, match="is not started by push"):
        bench.run([{"run": "true"}], trigger={"pull_request": {"types": ["opened"]}})


@pytest.mark.parametrize(("types", "started"), [(None, False), (["opened"], False), (["opened", "edited"], True)])
def test_a_kind_of_event_starts_a_workflow_that_names_it(types: list[str] | None, started: bool) -> None:
    on = {"pull_request": {"types": types} if types else None}
    workflow = Workflow("tried.yml", yaml.safe_dump({"on": on, "jobs": {}}))
    assert starts(workflow, "pull_request", {"action": "edited"}) is started
