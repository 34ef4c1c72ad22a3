"""The workflows as files: GitHub's parser, zizmor, what those let pass, and what the documentation says of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernelgate.bench.system import lock
from kernelgate.ci.policy.policy import RunnerGpu
from tests.miniature import ENVIRONMENT, git, repository
from tests.workflows import faults
from tests.workflows.documents import ROOT, Workflow, actions, steps, texts, workflows
from tests.workflows.language import Language

WORKFLOWS, ACTIONS = workflows(), actions()
CALLED = {each.path: each.text for each in WORKFLOWS.values()}
BIN = Path(sys.executable).parent
LOCAL = ("-c", "protocol.file.allow=always")
OURS = ("push", "schedule", "workflow_dispatch", "issue_comment")
"""Events that start code of the default branch or of people with write access."""


def test_github_reads_each(language: Language) -> None:
    found = [language.workflow_errors(each.path, each.text, CALLED) for each in WORKFLOWS.values()]
    found += [language.action_errors(each.path, each.text) for each in ACTIONS.values()]
    assert [one for errors in found for one in errors] == []


Check = Callable[[Workflow], Iterator[str]]
CHECKS: dict[str, Check] = {"secrets": faults.secrets, "caches": faults.caches, "no verbs": faults.no_verbs}


@pytest.mark.parametrize("check", CHECKS)
def test_it_has_no_fault(check: str) -> None:
    assert [fault for each in WORKFLOWS.values() for fault in CHECKS[check](each)] == []


def test_a_fault_that_is_planted_is_found() -> None:
    """Of each kind; the checks above would pass if they looked at nothing."""
    planted = {
        "secrets": ("build", "SHA: ", "X: ${{ secrets.X }}\n          SHA: "),
        "caches": ("build", "persist-credentials: false", "cache: pip"),
        "no verbs": ("measure", "run: kernelgate doctor", "run: kernelgate physician"),
    }
    for check, (name, old, new) in planted.items():
        workflow = WORKFLOWS[name]
        assert old in workflow.text
        assert list(CHECKS[check](replace(workflow, text=workflow.text.replace(old, new)))), check


def tool(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs a linter of the environment, without a way out to the network."""
    offline = {**os.environ, "NO_COLOR": "1", "https_proxy": "http://127.0.0.1:9"}
    offline.pop("GH_TOKEN", None)
    return subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, env=offline, capture_output=True, text=True)


ZIZMOR = ("zizmor", "--offline", "--persona=auditor", "--strict-collection", "--no-progress", "--quiet")


def test_zizmor_finds_nothing_in_its_strictest_persona() -> None:
    done = tool(*ZIZMOR, ".github")
    assert done.returncode == 0, done.stdout + done.stderr


MAX_EXCEPTIONS = 35


def test_every_exception_for_zizmor_gives_its_reason_and_they_are_few() -> None:
    lines = [line for each in [*WORKFLOWS.values(), *ACTIONS.values()] for line in each.text.splitlines()]
    ignored = [line.split("# zizmor: ")[1] for line in lines if "zizmor:" in line]
    assert ignored
    assert all(re.fullmatch(r"ignore\[[a-z-]+\] \S.{8,}", each) for each in ignored), ignored
    config = (ROOT / ".github/zizmor.yml").read_text("utf-8")
    relaxed = re.findall(r"#.*\n +(\S+): ref-pin$", config, re.MULTILINE)
    assert relaxed == ["kernelgate/kernelgate/*"]
    policies = {**dict.fromkeys(relaxed, "ref-pin"), "*": "hash-pin"}
    assert yaml.safe_load(config) == {"rules": {"unpinned-uses": {"config": {"policies": policies}}}}
    assert len(ignored) + len(relaxed) < MAX_EXCEPTIONS


@pytest.mark.parametrize(
    ("old", "new", "audit"),
    [
        ('build --ref "$SHA"', "build --ref ${{ github.head_ref }}", "template-injection"),
        ("actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1", "actions/checkout@v7", "unpinned-uses"),
        ("uses: ./.github/actions/setup", "uses: kernelgate/elsewhere@main", "unpinned-uses"),
        ("persist-credentials: false", "fetch-depth: 0", "artipacked"),
        ("permissions: {}\n", "", "excessive-permissions"),
    ],
    ids=[
        "injected",
        "another's action by its tag",
        "another repository by its branch",
        "a token is left",
        "all rights",
    ],
)
def test_zizmor_is_really_asked(old: str, new: str, audit: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yml"
    bad.write_text(WORKFLOWS["build"].text.replace(old, new))
    done = tool(*ZIZMOR, "--config", ".github/zizmor.yml", str(bad))
    assert done.returncode != 0
    assert audit in done.stdout


# Who may do what.


def test_pull_request_target_is_used_nowhere() -> None:
    assert not [name for name, each in WORKFLOWS.items() if "pull_request_target" in each.text]


@pytest.mark.parametrize("name", ["check", "nightly", "measure-pull-request", "plan", "build", "measure"])
def test_what_runs_a_pull_requests_code_can_only_read(name: str) -> None:
    granted = [right for job in WORKFLOWS[name].jobs.values() for right in job["permissions"].values()]
    assert set(granted) <= {"read"}


def called(job: dict[str, Any]) -> Workflow:
    return WORKFLOWS[Path(job["uses"].split("@")[0]).stem]


def needed(workflow: Workflow) -> dict[str, str]:
    """What its jobs ask for, all together."""
    asked = [right for inner in workflow.jobs.values() for right in inner["permissions"].items()]
    return dict(sorted(asked, key=lambda right: right[1] == "write"))


def test_a_job_that_calls_a_workflow_grants_what_its_jobs_ask_for() -> None:
    """GitHub does not start a run where one asks for more, and its parser does not say so beforehand."""
    for path, name, job in ((each.path, *one) for each in WORKFLOWS.values() for one in each.jobs.items()):
        if "uses" in job:
            assert job["permissions"] == needed(called(job)), (path, name)


def test_only_measure_and_bisect_run_on_a_gpu_and_measure_never_compiles() -> None:
    hosted = {"ubuntu-24.04"}
    for name, workflow in WORKFLOWS.items():
        runners = {str(job.get("runs-on")) for job in workflow.jobs.values() if "uses" not in job}
        assert (runners <= hosted) == (name not in ("measure", "bisect")), name
    jobs = WORKFLOWS["measure"].jobs
    ran = [step["run"] for step in jobs["measure"]["steps"] if "run" in step]
    verbs = [run.removeprefix("kernelgate ").removeprefix("step ").split()[0] for run in ran]
    asked = "admit index measured doctor canary fuzz bench resources sanitize sanitize profile"
    assert verbs == asked.split()
    assert jobs["resume"]["steps"] is jobs["measure"]["steps"]
    assert jobs["merge"]["runs-on"] in hosted


def test_whatever_compiles_has_the_submodules_that_can_be_had(tmp_path: Path) -> None:
    """One whose address nobody answers is left to `kernelgate build`, which names it if a header is missing."""
    jobs = (WORKFLOWS["build"].jobs["base"], WORKFLOWS["build"].jobs["head"], WORKFLOWS["bisect"].jobs["search"])
    runs = [[step["run"] for step in job["steps"] if step.get("working-directory") == "source"] for job in jobs]
    [fetch] = {before for before, *_ in runs}
    library = repository(tmp_path / "library", {"k.h": ""})
    holder = repository(tmp_path / "holder", {"csrc/k.cu": ""})
    for name in ("gone", "here"):
        git(holder, *LOCAL, "submodule", "--quiet", "add", str(library), name)
    git(holder, "config", "--file", ".gitmodules", "submodule.gone.url", str(tmp_path / "nowhere"))
    git(holder, "commit", "--quiet", "--all", "--message", "submodules")
    git(tmp_path, "clone", "--quiet", "holder", "source")
    allowed = {**ENVIRONMENT, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": LOCAL[1].split("=")[0]}
    allowed["GIT_CONFIG_VALUE_0"] = "always"
    done = subprocess.run(["bash", "-ec", fetch], cwd=tmp_path / "source", env=allowed, capture_output=True, text=True)
    assert (done.returncode, "::warning::" in done.stdout) == (0, True), done.stderr
    assert [(tmp_path / "source" / name / "k.h").exists() for name in ("gone", "here")] == [False, True]


def test_waiting_for_the_device_takes_no_time_from_a_measurement() -> None:
    """GitHub's limit counts it: the job has its hour besides the longest that its steps may wait."""
    job = WORKFLOWS["measure"].jobs["measure"]
    waiting = {verb for step in job["steps"] for verb in ("fuzz", "bench", "profile") if step.get("name") == verb}
    assert job["timeout-minutes"] >= 60 + len(waiting) * lock.WAIT_S / 60 == 240
    assert WORKFLOWS["bisect"].jobs["search"]["timeout-minutes"] >= 120 + lock.WAIT_S / 60


def test_a_search_gets_commits_that_the_trusted_side_resolved_and_no_token() -> None:
    search = WORKFLOWS["bisect"].jobs["search"]
    assert search["permissions"] == {"contents": "read"}
    assert not [text for text in texts(search) if "github.token" in text]
    [step] = [step for step in search["steps"] if step["name"] == "bisect"]
    commits = {name: step["env"][name] for name in ("GOOD", "BAD")}
    assert commits == {"GOOD": "${{ needs.ends.outputs.good }}", "BAD": "${{ needs.ends.outputs.bad }}"}


def test_the_cards_of_a_search_are_the_default_branchs() -> None:
    """The last checkout of the folder in which it is run; the one before it brings the commits."""
    there = [step["with"] for step in WORKFLOWS["bisect"].jobs["search"]["steps"] if "path" in step.get("with", {})]
    refs = [given["ref"] for given in there if given["path"] == "source"]
    default = "refs/heads/${{ github.event.repository.default_branch || github.ref_name }}"
    assert refs == ["${{ needs.ends.outputs.bad }}", default]


@pytest.mark.parametrize("name", ["pull_request", "pull_request_review", "push", "schedule", "something_new"])
def test_a_search_is_started_by_a_comment_or_a_dispatch_alone(name: str, language: Language) -> None:
    """A pull request's own workflow may call the default branch's."""
    jobs = WORKFLOWS["bisect"].jobs
    begins = "${{ " + jobs["ends"]["if"] + " }}"
    assert language.expanded(begins, {"github": event(name)}) is False
    assert language.expanded(begins, {"github": event("issue_comment")}) is True
    assert jobs["search"]["needs"] == "ends"
    assert "if" not in jobs["search"], "so it is skipped with it"


def test_measuring_code_is_the_called_workflows_own() -> None:
    """What a called workflow checks out first is its own commit, which the caller does not choose."""
    for name in set(WORKFLOWS) - {"check", "nightly", "docs", "release"}:
        for job_name, job in WORKFLOWS[name].jobs.items():
            if "steps" in job and (name, job_name) != ("report", "again"):
                first = job["steps"][0]["with"]
                assert (first["repository"], first["ref"]) == (
                    "${{ job.workflow_repository }}",
                    "${{ job.workflow_sha }}",
                ), f"{name}: {job_name}"


def test_a_write_token_never_meets_a_pull_requests_files_or_other_packages() -> None:
    """A job that may write checks out kernelgate's own commit alone, loads no library, and installs by hashes alone."""
    fileless = [WORKFLOWS[name].jobs["publish"] for name in ("docs", "release")] + [WORKFLOWS["report"].jobs["again"]]
    assert [[step.get("uses", "").partition("@")[0] for step in job["steps"]] for job in fileless] == [
        ["actions/deploy-pages"],
        ["actions/download-artifact", "pypa/gh-action-pypi-publish"],
        [""],
    ]
    jobs = [job for each in WORKFLOWS.values() for job in each.jobs.values() if "uses" not in job]
    writing = [job for job in jobs if "write" in job["permissions"].values() and job not in fileless]
    assert len(writing) == 5
    for job in writing:
        written = list(texts(job["steps"]))
        assert sum(text.startswith("actions/checkout@") for text in written) == 1
        assert not any("kernelgate-library" in text for text in written)
        [setup] = [step for step in job["steps"] if step.get("uses") == "./.github/actions/setup"]
        assert setup["with"] == {"target": "env-judge"}, "more packages than it needs beside the write token"
        assert all(step["run"].startswith("kernelgate ") for step in job["steps"] if "run" in step)
    installing = [step["run"] for _, step in steps(ACTIONS["setup"].content) if "make" in step.get("run", "")]
    assert installing == ['make "$TARGET"']


def event(name: str, head: str | None = None) -> dict[str, object]:
    """The `github` context of an event in the repository "o/r"; `head` is where a pull request comes from."""
    payload = {} if head is None else {"pull_request": {"head": {"repo": {"full_name": head}}, "number": 7}}
    return {"event_name": name, "repository": "o/r", "event": payload}


GATES: dict[str, tuple[dict[str, object], str]] = {
    **{name: (event(name), "kernelgate") for name in (*OURS, "merge_group")},
    "a branch of the repository": (event("pull_request", "o/r"), "kernelgate"),
    "a fork": (event("pull_request", "stranger/r"), "kernelgate-forks"),
    # A fork's own workflow may choose these events, which also run the fork's files.
    "a review of a fork's": (event("pull_request_review", "stranger/r"), "kernelgate-forks"),
    "a comment of a review of a fork's": (event("pull_request_review_comment", "stranger/r"), "kernelgate-forks"),
    "a fork that was deleted": (
        {"event_name": "pull_request", "repository": "o/r", "event": {"pull_request": {"head": {"repo": None}}}},
        "kernelgate-forks",
    ),
    "an event that is not known": (event("something_new"), "kernelgate-forks"),
}


@pytest.mark.parametrize("case", GATES)
def test_a_forks_run_waits_for_approval(case: str, language: Language) -> None:
    github, environment = GATES[case]
    gate = WORKFLOWS["measure"].jobs["measure"]["environment"]
    assert language.expanded(gate["name"], {"github": github}) == environment


def test_a_newer_push_cancels_the_older_run_of_its_pull_request_and_nothing_else(language: Language) -> None:
    def group(name: str, **github: object) -> dict[str, object]:
        found: dict[str, object] = language.expanded(WORKFLOWS[name].content["concurrency"], {"github": github})
        return found

    pull = event("pull_request", "o/r")
    for name in ("check", "measure-pull-request"):
        assert str(group(name, **pull)["group"]).endswith("-7")
        assert group(name, **pull)["cancel-in-progress"] is True
        refs = [f"refs/heads/gh-readonly-queue/main/pr-7-{sha}" for sha in "ab"]
        assert len({group(name, **event("merge_group"), sha=ref[-1], ref=ref)["group"] for ref in refs}) == 2, "a queue"
    edited = {"body": ({"body": {"from": "x"}}, "performance-7-description"), "base": ({"base": {}}, "performance-7")}
    for what, (changes, expected) in edited.items():
        github = {**pull, "event": {**pull["event"], "action": "edited", "changes": changes}}  # type: ignore[dict-item]
        assert group("measure-pull-request", **github)["group"] == expected, what
    # Of the documentation the newest alone is published, one at a time.
    for name in (name for name, each in WORKFLOWS.items() if "push" in each.triggers and name != "docs"):
        pushed = group(name, **event("push"), sha="a" * 40, run_id="1")
        assert (pushed["cancel-in-progress"], str(pushed["group"])[-40:]) == (False, "a" * 40), name


MEASURE = WORKFLOWS["measure"].jobs["measure"]
ENDED_WELL = {"success": True, "failure": False, "cancelled": False}


def bench_of(shard: int, shards: int) -> dict[str, object]:
    inputs = {"task": "bench", "base-sha": "b", "gpu": "l4", "shards": shards}
    return {"inputs": inputs, "matrix": {"shard": shard}, "steps": {"before": {"outputs": {}}}, "github": event("push")}


def test_as_many_jobs_measure_as_the_policy_may_ask_for(language: Language) -> None:
    with pytest.raises(ValueError, match="shards"):
        RunnerGpu(label="l4", target="8.9", shards=9)
    for shards in range(1, RunnerGpu(label="l4", target="8.9", shards=8).shards + 1):
        asked = language.expanded(MEASURE["strategy"]["matrix"], bench_of(1, shards))
        assert asked == {"shard": list(range(1, shards + 1))}
    assert WORKFLOWS["measure"].triggers["workflow_call"]["inputs"]["shards"]["default"] == 1
    shown = [language.expanded(MEASURE["name"], bench_of(*shard)) for shard in ((1, 1), (1, 2), (2, 2))]
    assert shown == ["measure", "measure 1/2", "measure 2/2"]
    merges = WORKFLOWS["measure"].jobs["merge"]["if"]
    measured = {"needs": {"measure": {"result": "failure", "outputs": {}}}}
    assert not language.holds(merges, {**bench_of(1, 1), **measured}, ENDED_WELL)
    assert language.holds(merges, {**bench_of(1, 2), **measured}, ENDED_WELL), "the rest of a lost shard stands"


def test_those_shards_go_on_whose_runner_was_taken_away(language: Language) -> None:
    """GitHub combines the outputs of a matrix' jobs; nektos/act takes those of the first that ends."""
    outputs: dict[str, object] = {}
    for shard, preempted in ((1, "true"), (2, ""), (3, "true")):
        contexts = bench_of(shard, 3) | {
            "steps": {"before": {"outputs": {}}, "fuzz": {"outputs": {"preempted": preempted}}}
        }
        left = language.expanded(MEASURE["outputs"], contexts)
        outputs |= {name: value for name, value in left.items() if value}
    resume, ended = WORKFLOWS["measure"].jobs["resume"], {"needs": {"measure": {"outputs": outputs}}}
    assert language.holds(resume["if"], ended, ENDED_WELL)
    assert language.expanded(resume["strategy"]["matrix"], ended) == {"shard": [1, 3, 0], "exclude": [{"shard": 0}]}
    assert not language.holds(resume["if"], {"needs": {"measure": {"outputs": {"measured": "true"}}}}, ENDED_WELL)


def test_the_first_shard_does_what_is_done_once(language: Language) -> None:
    def done_by(shard: int, shards: int) -> set[str]:
        contexts = {**bench_of(shard, shards), "vars": {}}
        return {step["name"] for step in MEASURE["steps"] if language.holds(step.get("if"), contexts, ENDED_WELL)}

    alone, first, second = done_by(1, 1), done_by(1, 2), done_by(2, 2)
    assert alone == first
    assert first - second == {"fuzz", "resources", "sanitize", "profile"}
    assert {"admit", "doctor", "bench"} <= second
    [fuzz] = [step for step in MEASURE["steps"] if step["name"] == "fuzz"]
    assert language.expanded(fuzz["continue-on-error"], bench_of(1, 2)) is True, "a wrong result is in the record"


def test_what_was_measured_before_is_handed_over_once(language: Language) -> None:
    """In a merge queue, where each shard finds the whole record."""
    [step] = [step for step in MEASURE["steps"] if step["name"] == "hand over the record"]

    def handed_over(shard: int, measured: str) -> object:
        contexts = {**bench_of(shard, 2), "steps": {"before": {"outputs": {"measured": measured}}}}
        contexts["env"] = {"RECORD": language.expanded(MEASURE["env"]["RECORD"], contexts)}
        holds = language.holds(step["if"], contexts, ENDED_WELL)
        return language.expanded(step["with"]["name"], contexts) if holds else None

    assert [handed_over(1, "true"), handed_over(2, "true")] == ["kernelgate-record-l4", None]
    assert [handed_over(1, "false"), handed_over(2, "")] == ["kernelgate-shard-l4-1", "kernelgate-shard-l4-2"]
    ended = {"needs": {"measure": {"result": "success", "outputs": {"measured": "true"}}}}
    assert not language.holds(WORKFLOWS["measure"].jobs["merge"]["if"], {**bench_of(1, 2), **ended}, ENDED_WELL)


def test_dependabot_waits_before_it_offers_a_version() -> None:

    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    assert {each["package-ecosystem"] for each in updates} == {"github-actions", "pip", "npm"}
    assert all(each["cooldown"]["default-days"] >= 7 for each in updates)


def variables_of_the_verbs() -> set[str]:
    """Every KERNELGATE_<VERB>_<OPTION> that sets an option, by its own name or by the one that click derives."""
    found: set[str] = set()
    for path, command in faults.commands():
        for option in command.params:
            derived = f"KERNELGATE_{'_'.join(path)}_{option.name}".upper()
            found.add(str(option.envvar or derived))
    return found


def test_every_variable_that_is_set_for_a_verb_is_one_that_it_reads() -> None:
    verbs = "|".join(path[0] for path, _ in faults.commands() if len(path) == 1).upper()
    text = "".join(each.text for each in WORKFLOWS.values())
    given = set(re.findall(rf"KERNELGATE_(?:{verbs})_[A-Z_]+", text))
    assert given
    assert given - variables_of_the_verbs() == set()


# What the documentation says of them, and the workflows of docs/caller, which another repository copies.

SECURITY = (ROOT / "docs/security.md").read_text("utf-8")
CALLERS = {
    file.stem: Workflow(f".github/workflows/{file.name}", file.read_text("utf-8"))
    for file in sorted((ROOT / "docs/caller").glob("*.yml"))
}


@pytest.mark.parametrize("name", CALLERS)
def test_a_workflow_to_copy_calls_one_of_the_default_branch_as_it_asks(name: str, language: Language) -> None:
    caller = CALLERS[name]
    assert language.workflow_errors(caller.path, caller.text, CALLED) == []
    assert list(faults.secrets(caller)) == []
    [job] = caller.jobs.values()
    assert job["uses"] == f"{faults.CALLED}{Path(called(job).path).name}@main"
    # A called workflow can do no more than its caller; GitHub refuses the run where a job asks for more.
    assert job["permissions"] == needed(called(job))
    # Its inputs too: a called workflow does not get those of a dispatch, and reads them from the event.
    assert called(job).triggers.keys() - caller.triggers.keys() == {"workflow_call"}
    assert caller.triggers == {key: called(job).triggers[key] for key in caller.triggers}
    if name == "report":
        assert caller.triggers["workflow_run"]["workflows"] == [CALLERS["performance"].content["name"]]


def test_the_security_page_names_each_job_that_may_write() -> None:
    """Callers of other workflows pass on what these ask for."""
    rows = re.findall(r"^\|(\*\w+\*(?:, \*\w+\*)*)\|.*\|([^|]+)\|$", SECURITY, re.MULTILINE)
    told = {name: held != "nothing" for names, held in rows for name in re.findall(r"\w+", names)}
    jobs = {name: job for each in WORKFLOWS.values() for name, job in each.jobs.items() if "uses" not in job}
    assert told.keys() <= jobs.keys()
    writing = {name for name, job in jobs.items() if "write" in job["permissions"].values()}
    assert {name for name, writes in told.items() if writes} == writing
