"""What a run measures: from its event, the changed files, the labels, the policy, and what somebody typed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernelgate.bench.core.errors import UsageError
from kernelgate.ci.github.plan import Plan, announce, plan
from kernelgate.ci.policy.policy import Measure, RunnerGpu
from tests.ci.desk import Desk
from tests.fakes.github_server import event

HEAD, BASE = "a" * 40, "b" * 40
TWO = Measure(
    gpus=(RunnerGpu(label="l4", target="8.9", baseline="b.json"), RunnerGpu(label="h100", target="9.0", shards=2))
)


def planned(desk: Desk, payload: dict[str, Any], rules: Measure | None = None) -> Plan:
    desk.told(payload)
    found = plan(desk.bot.step, desk.bot, rules or Measure())
    announce(desk.bot.step, found)
    return found


def opened(desk: Desk, *files: str, **pull: Any) -> dict[str, Any]:
    desk.github.open_pull(head_sha=HEAD, base_sha=BASE, files=[{"filename": name} for name in files], **pull)
    payload = event("pull_request.synchronize")
    payload["pull_request"] |= {"number": 1}
    payload["pull_request"]["head"]["sha"] = HEAD
    return payload


def dispatched(**inputs: str) -> dict[str, Any]:
    return event("workflow_dispatch") | {"inputs": {key.replace("_", "-"): value for key, value in inputs.items()}}


@pytest.mark.parametrize(
    ("files", "labels", "measure", "said"),
    [
        (["csrc/k.cu"], [], True, "touches what is measured"),
        (["README.md"], [], False, "changes no measured path"),
        (["csrc/k.cu"], ["skip-performance"], False, "has the label skip-performance"),
        ([f"docs/{number}" for number in range(300)], [], True, "touches what is measured"),
    ],
    ids=["a kernel", "no kernel", "a label", "more files than GitHub lists"],
)
def test_a_merge_group_is_measured_against_its_own_base(
    desk: Desk, files: list[str], labels: list[str], measure: bool, said: str
) -> None:
    desk.github.open_pull(number=104, head_sha="d" * 40, labels=labels)
    desk.github.compared[BASE, HEAD] = files
    payload = event("merge_group.checks_requested")
    payload["merge_group"] |= {"head_sha": HEAD, "base_sha": BASE}
    found = planned(desk, payload)
    assert (found.measure, said in found.reason) == (measure, True)
    assert (found.run.base_sha, found.run.head_sha, found.run.pull_request) == (BASE, HEAD, None)


@pytest.mark.parametrize(("files", "measure"), [(["bench/timing/timer.py"], True), (["ci/judge/verdict.py"], False)])
def test_the_changed_files_decide(desk: Desk, files: list[str], measure: bool) -> None:
    found = planned(desk, opened(desk, *files))
    assert found.measure == measure
    assert ("Not measured: " in desk.summary) == (not measure)


@pytest.mark.parametrize(
    ("changes", "measure"), [({"body": {"from": "x"}}, False), ({"base": {"ref": {"from": "main"}}}, True)]
)
def test_another_base_is_measured_and_an_edited_text_is_not(desk: Desk, changes: dict[str, Any], measure: bool) -> None:
    found = planned(desk, opened(desk, "csrc/k.cu") | {"action": "edited", "changes": changes})
    assert (found.measure, "only the description was edited" in desk.summary) == (measure, not measure)


@pytest.mark.parametrize(
    ("drafts", "draft", "action", "measure"),
    [
        ("on_ready", True, "opened", False),
        ("on_ready", False, "ready_for_review", True),
        ("always", True, "opened", True),
    ],
)
def test_a_draft_is_measured_once_it_is_ready(desk: Desk, drafts: str, draft: bool, action: str, measure: bool) -> None:
    payload = opened(desk, "csrc/k.cu", draft=draft) | {"action": action}
    found = planned(desk, payload, Measure.model_validate({"drafts": drafts}))
    assert (found.measure, "Not measured: this is a draft" in desk.summary) == (measure, not measure)


def test_everything_is_handed_on(desk: Desk) -> None:
    desk.github.merge_bases[BASE, HEAD] = "c" * 40
    planned(desk, opened(desk, "csrc/k.cu"), TWO)
    assert json.loads(desk.outputs["gpus"]) == [{"label": "l4", "shards": 1}, {"label": "h100", "shards": 2}]
    assert desk.outputs["targets"] == "8.9;9.0"
    assert desk.outputs["base_sha"] == "c" * 40
    assert (desk.outputs["head_sha"], desk.outputs["pull_request"]) == (HEAD, "1")


@pytest.mark.parametrize(
    ("inputs", "head", "base", "number", "cases", "suite"),
    [
        ({"pull_request": "#1", "case": "m512", "set": "full"}, HEAD, BASE, 1, ("m512",), "full"),
        ({"ref": "faster"}, "d" * 40, "c" * 40, None, (), "quick"),
        ({"case": "m512"}, "e" * 40, None, None, ("m512",), "quick"),
        ({"case": "m512", "base": "main"}, "e" * 40, "e" * 40, None, ("m512",), "quick"),
    ],
    ids=["a pull request", "a branch, against where it left", "the default branch, alone", "a base as asked for"],
)
def test_what_is_profiled_against_what(
    desk: Desk, inputs: Any, head: str, base: str | None, number: int | None, cases: tuple[str, ...], suite: str
) -> None:
    desk.github.open_pull(head_sha=HEAD, base_sha=BASE)
    desk.github.refs |= {"heads/faster": "d" * 40, "heads/main": "e" * 40}
    desk.github.merge_bases |= {("main", "d" * 40): "c" * 40, ("main", "e" * 40): "e" * 40}
    found = planned(desk, dispatched(**inputs))
    assert (found.run.head_sha, found.run.base_sha, found.run.pull_request) == (head, base, number)
    assert (found.cases, found.set) == (cases, suite)


SHELL = ["$(id)", "`id`", ";id", "a b", "--upload-pack=x", "a..b", "/x", "a\nb", "${{x}}", "ａ"]
CASES = [text for text in SHELL if text not in ("a b", "a..b")]  # two ids, and one with two dots, are harmless
CASES += ["a/b/c", "a/", "a/../b", "../a", "a/.b", "a/-b", "a b;id", "a,$(id)", "x" * 81]


@pytest.mark.parametrize("name", ["ref", "base", "pull_request", "set", "gpu", "case"])
def test_shell_text_in_any_input_is_refused(desk: Desk, name: str) -> None:
    desk.github.refs["heads/faster"] = HEAD
    for text in CASES if name == "case" else SHELL:
        with pytest.raises(UsageError) as caught:
            planned(desk, dispatched(**({"ref": "faster"} | {name: text})))
        assert len(str(caught.value).splitlines()) == 1
    assert desk.outputs == {}


def test_the_default_branch_is_measured_beside_the_pinned_commit(desk: Desk) -> None:
    desk.bot.step.environment["GITHUB_SHA"] = HEAD  # type: ignore[index]
    pinned = Measure(pinned=BASE)
    desk.github.refs["heads/old"] = BASE
    assert planned(desk, {}).pinned is None
    assert planned(desk, {}, pinned).pinned == BASE
    assert desk.outputs["pinned_sha"] == BASE
    assert planned(desk, opened(desk, "csrc/k.cu"), pinned).pinned is None
    desk.github.merge_bases[BASE, HEAD] = "c" * 40
    with pytest.raises(UsageError, match=r"measure\.pinned of the policy is no commit of the default branch"):
        planned(desk, {}, pinned)
