"""From what a run left behind to what the pull request shows, over the wire."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench import record
from kernelgate.bench.core.documentation import DOCS
from kernelgate.ci.commands.cli import run as kernelgate
from kernelgate.ci.github import client
from kernelgate.ci.github.fetch import fetch, read_run_info
from kernelgate.ci.github.publish import post
from kernelgate.ci.github.upsert import shown_stamp
from kernelgate.ci.policy.policy import Policy
from tests.ci.card_examples import CARD_EXAMPLES
from tests.ci.desk import Desk
from tests.ci.report_examples import BASE_SHA, EXAMPLES, HEAD_SHA
from tests.fakes.github_server import Json, Pull

POLICY = Policy()
PATCH = """@@ -10,6 +10,7 @@ __global__ void k() {
 a
-b
+c
+d
 e
@@ -40,3 +41,2 @@
 x
-y
 z"""
FILES: list[dict[str, Any]] = [{"filename": "csrc/k.cuh", "patch": PATCH}, {"filename": "README.md", "patch": PATCH}]
BODY = """## Intent and hypothesis
Registers limit occupancy.
## What was changed
The launch bounds.
## Claimed effect
{claim}
## Statistical results
as the bot writes them below
## Profiler evidence
before 200 registers, after 128
## Correctness
- [x] fuzz
## Testing done
on an L4
"""


def named(example: str, **subject: Any) -> bytes:
    """An example's record, as the runner would have written it for HEAD_SHA."""
    content = json.loads(record.to_json(EXAMPLES[example]().record))
    content["run"] |= {"head_sha": HEAD_SHA, "base_sha": BASE_SHA} | subject
    return json.dumps(content).encode()


def the_pull(desk: Desk, **facts: Any) -> Pull:
    """The one there is, of a kernel and with a complete description unless the facts say otherwise."""
    usual = {"head_sha": HEAD_SHA, "base_sha": BASE_SHA, "files": FILES, "body": BODY.format(claim="none")}
    return desk.github.pulls.get(1) or desk.github.open_pull(**usual | facts)


def measured(
    desk: Desk,
    tmp_path: Path,
    members: dict[str, dict[str, bytes]],
    claim: str = "none",
    job: str = "",
    run: Any = None,
    **pull: Any,
) -> Path:
    """A pull request with a run of this `job` that left these artifacts behind, fetched."""
    opened = the_pull(desk, **{"body": BODY.format(claim=claim)} | pull)
    jobs = [(job, "success", "")] if job else []
    return ran(desk, tmp_path, desk.github.add_run(opened, **(run or {})), jobs, members)


def ran(desk: Desk, tmp_path: Path, run: Json, jobs: Any = (), members: Any = None) -> Path:
    """The run ended with these jobs, each with its end and where it stopped, and left these artifacts; fetched."""
    for job, end, step in jobs:
        desk.github.add_job(run, job, end, *([(step, end)] if step else ()))
    for name, content in (members or {}).items():
        desk.github.add_artifact(run, name, content)
    folder = tmp_path / f"run{run['id']}"
    fetch(desk.bot, run["id"], folder)
    return folder


def l4(example: str) -> dict[str, dict[str, bytes]]:
    return {"kernelgate-record-l4": {"run.json": named(example)}}


def the_comment(desk: Desk) -> str:
    [body] = desk.github.bodies(1)
    return body


def latest(desk: Desk) -> Json:
    """The check run by which a required check goes."""
    return desk.github.checks[max(desk.github.checks)]


def the_check(desk: Desk) -> Json:
    [shown] = desk.github.checks.values()
    return shown


def concluded(desk: Desk) -> tuple[str, list[str]]:
    """What the latest check concludes, and the labels."""
    return latest(desk)["conclusion"], desk.github.pulls[1].labels


def test_a_regression_is_said_everywhere(desk: Desk, tmp_path: Path) -> None:
    folder = measured(desk, tmp_path, l4("slower"))
    assert post(desk.bot, folder, POLICY) == 0
    title = "❌ Blocks: 1 of 9 cases 4.90% slower on the L4, 8 unchanged"
    assert the_comment(desk).startswith(f"### {title}\n")
    assert desk.summary.startswith(f"### {title}\n")
    shown = the_check(desk)
    assert (shown["conclusion"], shown["head_sha"], shown["output"]["title"]) == ("failure", HEAD_SHA, title)
    assert [(n["path"], n["start_line"], n["end_line"], n["annotation_level"]) for n in shown["annotations"]] == [
        ("csrc/k.cuh", 10, 16, "failure")
    ], "at the longest hunk of a kernel's source"
    assert shown["annotations"][0]["title"] == title
    assert desk.github.pulls[1].labels == ["performance: regressed"]


def carded(name: str) -> dict[str, dict[str, bytes]]:
    made = CARD_EXAMPLES[name]().record
    run = made.run.model_copy(update={"head_sha": HEAD_SHA, "base_sha": BASE_SHA})
    return {"kernelgate-record-l4": {"run.json": record.to_json(made.model_copy(update={"run": run})).encode()}}


@pytest.mark.parametrize(("name", "stands"), [("base_does_not_compile", True), ("one_library", False)])
def test_a_head_without_a_base_hides_no_failure_of_the_same_commit(
    desk: Desk, tmp_path: Path, name: str, stands: bool
) -> None:
    post(desk.bot, measured(desk, tmp_path, l4("slower")), POLICY)
    post(desk.bot, measured(desk, tmp_path, carded(name)), POLICY)
    assert (latest(desk)["conclusion"] == "failure") == stands


def test_posting_twice_changes_nothing(desk: Desk, tmp_path: Path) -> None:
    """Nor does the page that another attempt uploaded."""
    folder = measured(desk, tmp_path, l4("slower"))
    pages = [f"https://github.com/octo-org/kernels/actions/runs/7/artifacts/{number}" for number in (70, 71)]
    post(desk.bot, folder, POLICY, page=pages[0])
    assert f"[The page]({pages[0]}) has all of this." in the_comment(desk)
    assert f"[The run]({read_run_info(folder).run_url}#artifacts)" in the_comment(desk)
    before = len(desk.github.writes())
    post(desk.bot, folder, POLICY, page=pages[1])
    assert desk.github.writes()[before:] == []
    post(desk.bot, folder, POLICY, page="https://evil.test/) <img src=x>")
    assert "evil" not in the_comment(desk), "an address that is none links nowhere"
    assert "The page has all of this." in the_comment(desk)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default branch plans the cases of the example that the verbs are tried on."""
    cases = EXAMPLES["slower"]().record.cases

    def expected(_: object, processes: int, label: str, target: str, __: object) -> record.Expected:
        return record.Expected(label=label, target=target, cases=cases, checks=("fuzz",), processes=processes)

    monkeypatch.setattr("kernelgate.bench.kernel.cards.expected", expected)


@pytest.mark.usefixtures("planned")
def test_the_verb_writes_and_posts(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What other cases are timed than the default branch plans proves nothing, however fast."""
    folder = measured(desk, tmp_path, l4("slower"), "- s512_b32_h8_d64_fp16: 10% faster")
    other = measured(desk, tmp_path, l4("faster"))
    for name, value in desk.bot.step.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(client, "connect", partial(client.connect, pause_s=0))
    assert kernelgate(["report", "--from", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "### ❌ Blocks: 1 of 9 cases 4.90% slower on the L4, 8 unchanged\n" in printed
    assert "is contradicted" in printed
    assert desk.github.writes() == []
    assert kernelgate(["report", "--from", str(other), "--post"]) == 0
    assert concluded(desk) == ("action_required", [])


def note(**facts: Any) -> dict[str, bytes]:
    said = {"schema": "kernelgate.failure/1", "fault": "build", "message": "csrc/k.cuh:11: error: no"} | facts
    return {"failure.json": json.dumps(said).encode()}


def test_a_change_that_does_not_compile_is_the_authors(desk: Desk, tmp_path: Path) -> None:
    post(desk.bot, measured(desk, tmp_path, {"kernelgate-record-build": note(target="sm_89")}), POLICY)
    assert the_comment(desk).startswith("### 🔧 Blocks: does not compile for `sm_89`\n\n`csrc/k.cuh:11: error: no` ")
    assert the_check(desk)["conclusion"] == "failure"
    assert [(n["path"], n["start_line"], n["title"]) for n in the_check(desk)["annotations"]] == [
        ("csrc/k.cuh", 11, "🔧 Blocks: does not compile for sm_89")
    ]


def skipped_run(desk: Desk, tmp_path: Path) -> Path:
    """A run of the pull request whose plan was to measure nothing, fetched."""
    jobs = [("plan / plan", "success", "plan"), ("measure", "skipped", "")]
    return ran(desk, tmp_path, desk.github.add_run(desk.github.pulls[1]), jobs)


def test_what_was_not_to_be_measured_gets_a_neutral_check_alone(desk: Desk, tmp_path: Path) -> None:
    the_pull(desk, files=[{"filename": "README.md"}], draft=True)
    assert post(desk.bot, skipped_run(desk, tmp_path), POLICY) == 0
    assert desk.github.comments == {}
    assert the_check(desk)["conclusion"] == "neutral"
    why = "### ❔ Does not block: not measured: the pull request changes no measured path\n"
    assert the_check(desk)["output"]["summary"].startswith(why)
    assert "have it measured: `/kernelgate bench`" in the_check(desk)["output"]["summary"]


def test_a_draft_passes_nothing_and_is_told_when_it_is_measured(desk: Desk, tmp_path: Path) -> None:
    """What is merged by itself once it is ready must wait for its measurement."""
    the_pull(desk, draft=True)
    assert post(desk.bot, skipped_run(desk, tmp_path), POLICY) == 0
    assert desk.github.comments == {}
    assert concluded(desk) == ("action_required", [])
    output = the_check(desk)["output"]
    assert output["title"] == "❔ Held: not measured yet: this is a draft"
    assert "mark it ready, or" in output["summary"]
    assert "`/kernelgate bench`" in output["summary"]
    # A command measures it, or it was made ready.
    post(desk.bot, measured(desk, tmp_path, l4("equivalent")), POLICY)
    assert latest(desk)["conclusion"] == "success"
    assert the_comment(desk).startswith("### ✅ Does not block: no change")


def test_what_was_to_be_measured_and_never_was_gets_no_check(desk: Desk, tmp_path: Path) -> None:
    """An edited description of a kernel change without a run: a neutral check would let it pass."""
    the_pull(desk)
    assert post(desk.bot, skipped_run(desk, tmp_path), POLICY) == 0
    assert desk.github.writes() == []
    assert "the commit was never measured" in desk.summary


def test_a_verdict_on_an_older_commit_does_not_outlive_it(desk: Desk, tmp_path: Path) -> None:
    post(desk.bot, measured(desk, tmp_path, l4("slower")), POLICY)
    assert desk.github.pulls[1].labels == ["performance: regressed"]
    desk.github.pulls[1].head_sha = "f" * 40
    desk.github.pulls[1].labels.append("skip-performance")
    post(desk.bot, skipped_run(desk, tmp_path), POLICY)
    why = "the pull request has the label skip-performance"
    assert the_comment(desk).startswith(f"### ❔ Does not block: not measured: {why}")
    assert desk.github.pulls[1].labels == ["skip-performance"]


def measured_run(desk: Desk, tmp_path: Path, example: str, claim: str = "none", **pull: Any) -> None:
    post(desk.bot, measured(desk, tmp_path, l4(example), claim, "measure (l4) / measure", **pull), POLICY)


def test_a_run_that_a_newer_one_cancelled_says_nothing(desk: Desk, tmp_path: Path) -> None:
    """Closing and opening a pull request again cancels what is under way."""
    cancelled, newer = (desk.github.add_run(the_pull(desk), conclusion=how) for how in ("cancelled", None))
    newer["status"] = "waiting"
    folder = ran(desk, tmp_path, cancelled, [("measure (l4) / measure", "cancelled", "")])
    assert post(desk.bot, folder, POLICY) == 0
    assert desk.github.writes() == []


@pytest.mark.parametrize("conclusion", ["cancelled", "failure", "timed_out", "another base", "uncertain", "certain"])
def test_a_run_without_a_verdict_takes_no_failure_back(desk: Desk, tmp_path: Path, conclusion: str) -> None:
    """Of another base the record no longer fits, and it asks for no measurement. A certain verdict does."""
    measured_run(desk, tmp_path, "slower")
    if conclusion == "another base":
        desk.github.pulls[1].base_sha = "d" * 40
        post(desk.bot, skipped_run(desk, tmp_path), POLICY)
    elif "certain" in conclusion:
        measured_run(desk, tmp_path, "faster" if conclusion == "certain" else "cannot_tell_throttled")
    else:
        run = desk.github.add_run(desk.github.pulls[1], conclusion=conclusion)
        jobs = [("plan / plan", "success", ""), ("measure (l4) / measure", conclusion, "")]
        post(desk.bot, ran(desk, tmp_path, run, jobs), POLICY)
        assert the_comment(desk).startswith("### 🛠️ Held: not judged, not your fault")
    taken_back = ("success", ["performance: improved"])
    assert concluded(desk) == (taken_back if conclusion == "certain" else ("failure", ["performance: regressed"]))


def test_a_description_put_right_takes_its_own_failure_back(desk: Desk, tmp_path: Path) -> None:
    measured_run(desk, tmp_path, "cannot_tell_throttled", body="thanks")
    assert the_check(desk)["conclusion"] == "failure"
    desk.github.pulls[1].body = BODY.format(claim="none")
    post(desk.bot, skipped_run(desk, tmp_path), POLICY)
    assert the_check(desk)["conclusion"] == "action_required", "what was in doubt is measured again"


def test_a_commit_of_two_pull_requests_passes_for_neither(desk: Desk, tmp_path: Path) -> None:
    """Measured against an old and slow release it is faster; that must not count for the default branch."""
    post(desk.bot, measured(desk, tmp_path, l4("faster"), base_ref="release"), POLICY)
    assert the_check(desk)["conclusion"] == "success"
    second = desk.github.open_pull(head_sha=HEAD_SHA, base_sha="d" * 40, files=FILES)
    assert post(desk.bot, ran(desk, tmp_path, desk.github.add_run(second)), POLICY) == 0
    shown, title = latest(desk), "⛔ Blocks: another pull request that has the same commit"
    assert (shown["conclusion"], shown["output"]["title"]) == ("failure", title)
    assert "pull requests 2, 1 have the same head" in shown["output"]["summary"].replace("`", "")


def test_without_a_pull_request_the_summary_has_it(desk: Desk, tmp_path: Path) -> None:
    folder = measured(desk, tmp_path, l4("slower"))
    fetch(desk.bot, desk.github.add_run(desk.github.pulls[1], head_branch="gone")["id"], folder)
    assert post(desk.bot, folder, POLICY) == 0
    assert "nothing posted" in desk.summary
    assert "4.90% slower" in desk.summary


def test_missing_permissions_are_said_in_the_summary(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = measured(desk, tmp_path, l4("slower"))
    desk.github.permissions = {"actions": "read", "contents": "read", "pull-requests": "read", "checks": "write"}
    assert post(desk.bot, folder, POLICY) == 0
    assert desk.github.comments == {}
    assert the_check(desk)["conclusion"] == "failure"
    assert desk.summary.startswith("### ❌ Blocks: 1 of 9 cases 4.90% slower")
    assert "the comment is missing: " in desk.summary
    assert "a token needs pull-requests: write" in desk.summary
    printed = capsys.readouterr().out
    assert "::warning title=kernelgate::comment: GitHub refused" in printed
    assert desk.github.token not in printed


def test_one_thing_that_fails_does_not_keep_the_others(desk: Desk, tmp_path: Path) -> None:
    folder = measured(desk, tmp_path, l4("slower"))
    desk.github.fault("POST", "/issues/1/comments", status=502, times=100)
    assert post(desk.bot, folder, POLICY) == 3
    assert concluded(desk) == ("failure", ["performance: regressed"])


def stopped(desk: Desk, tmp_path: Path, records: dict[str, dict[str, bytes]], *jobs: tuple[str, str]) -> str:
    """Posts a run that left these records and in which these jobs failed at a step; the comment."""
    run = desk.github.add_run(the_pull(desk), conclusion="failure")
    post(desk.bot, ran(desk, tmp_path, run, [(job, "failure", step) for job, step in jobs], records), POLICY)
    return the_comment(desk)


def test_a_gpu_that_left_nothing_keeps_the_verdict_open(desk: Desk, tmp_path: Path) -> None:
    """A kernel that takes the runner down on one GPU must not pass for its sake on the other."""
    said = stopped(desk, tmp_path, l4("faster"), ("measure (h100) / measure", "bench"))
    assert said.startswith("### ❔ Held: not verified on `h100`: the job measure (h100) `/` measure stopped")
    assert "1 of 4 cases 12.80% faster on `l4`, 3 unchanged" in said
    assert concluded(desk) == ("action_required", [])


def test_a_gpu_whose_shards_are_all_lost_is_to_blame_for_it(desk: Desk, tmp_path: Path) -> None:
    """And not the job that had nothing to merge."""
    jobs = (("measure 1/2", "doctor"), ("measure 2/2", "doctor"), ("merge", "merge"))
    said = stopped(desk, tmp_path, l4("equivalent"), *((f"measure (h100) / {job}", step) for job, step in jobs))
    assert said.startswith("### 🛠️ Held: ")
    assert "`h100` missing" in said.splitlines()[0]
    assert "the job measure (h100) `/` measure `1/2` stopped at doctor" in said
    assert "stopped at merge" not in said


@pytest.mark.parametrize("example", ["faster", "equivalent"])
def test_a_record_that_was_cut_short_keeps_the_verdict_open(desk: Desk, tmp_path: Path, example: str) -> None:
    """What came after may be what is slower."""
    said = stopped(desk, tmp_path, l4(example), ("measure (l4) / measure", "bench"))
    first, _ = said.split("; so far ", 1)
    job = "`measure (l4) / measure`"
    assert first == f"### ❔ Held: incomplete, since not everything was measured, since the job {job} stopped at bench"
    assert concluded(desk) == ("action_required", [])


def test_a_refused_record_of_one_gpu_keeps_the_verdict_open_and_is_said_once(desk: Desk, tmp_path: Path) -> None:
    other = {"kernelgate-record-h100": {"run.json": named("faster", head_sha="d" * 40)}}
    post(desk.bot, measured(desk, tmp_path, l4("faster") | other), POLICY)
    why = "the record is of another commit: it says `ddddddd`, GitHub says `a1b2c3d`"
    first = the_comment(desk).splitlines()[0]
    assert first.startswith(f"### ❔ Held: incomplete, since artifact `kernelgate-record-h100` is refused: {why}")
    assert "; so far 1 of 4 cases 12.80% faster on the L4" in first
    assert "d" * 8 not in the_comment(desk)
    assert concluded(desk) == ("action_required", [])


def test_a_change_to_the_workflows_is_not_judged(desk: Desk, tmp_path: Path) -> None:
    files = [*FILES, {"filename": ".github/workflows/performance.yml"}]
    post(desk.bot, measured(desk, tmp_path, l4("faster"), files=files), POLICY)
    why = "this pull request changes the workflows that measure it"
    assert the_comment(desk).startswith(f"### ❔ Held: not judged: {why}")
    assert "`/kernelgate bench`" in the_comment(desk)
    assert concluded(desk) == ("action_required", [])
    # A change to the workflows alone, such as one that offers a newer action, waits for nobody.
    desk.github.pulls[1].files = files[-1:]
    desk.github.comments.clear()
    post(desk.bot, measured(desk, tmp_path, l4("faster")), POLICY)
    assert desk.github.comments == {}
    assert latest(desk)["conclusion"] == "neutral"


EVIL = (
    "@octocat <img src=x onerror=alert(1)> [x](https://evil.test) ![p](https://evil.test/p.png) #1 "
    "<!-- kernelgate --> --> </details> | a | b | ``` <!-- kernelgate-state topic=verdict head="
    + "e" * 40
    + " run=999999 attempt=1 -->"
)


def test_text_of_a_stranger_is_inert_wherever_it_comes_from(desk: Desk, tmp_path: Path) -> None:
    content = json.loads(named("slower"))
    content["notes"] = [{"text": EVIL}, {"text": "\n### forged\n" + EVIL}]
    content["environments"][0]["host"] = EVIL
    content["environments"][0]["device"]["name"] = EVIL
    members, claim = {"kernelgate-record-l4": {"run.json": json.dumps(content).encode()}}, f"- {EVIL}: 10% faster"
    folder = measured(desk, tmp_path, members, claim, head_ref=EVIL.replace(" ", "-"), title=EVIL)
    post(desk.bot, folder, POLICY)
    body = the_comment(desk)
    stamp = shown_stamp(desk.bot, 1)
    assert stamp.run_id != 999999
    assert inert(body)
    assert inert(desk.summary.split("nothing posted")[0])
    post(desk.bot, folder, POLICY)
    assert len(desk.github.comments) == 1


def test_compiler_output_and_a_job_name_of_a_fork_are_inert(desk: Desk, tmp_path: Path) -> None:
    members = note(message=f"csrc/k.cuh:11: error: {EVIL}", log=[EVIL, "```", "~~~", "</details>"])
    post(desk.bot, measured(desk, tmp_path, {"kernelgate-record-build": members}), POLICY)
    assert inert(the_comment(desk))
    assert inert(stopped(desk, tmp_path, {}, (EVIL, EVIL)))


def inert(markdown: str) -> bool:
    """Whether nothing of EVIL is left outside code, where Markdown would give it power."""
    from markdown_it import MarkdownIt

    for ours in ("https://github.com/octo-org/kernels/", f"{DOCS}/"):
        markdown = markdown.replace(f"]({ours}", "](ours:")
    parser = MarkdownIt("commonmark").enable("table")
    texts: list[str] = []
    for token in parser.parse(markdown):
        for inner in token.children or [token]:
            assert inner.type != "image", inner
            assert inner.type != "link_open" or str(inner.attrs["href"]).startswith("ours:"), inner
            if inner.type in ("html_block", "html_inline"):
                assert "evil" not in inner.content
                assert "onerror" not in inner.content
            elif inner.type == "text":
                texts.append(inner.content)
    said = "\n".join(texts)
    return not any(sign in said for sign in ("@octocat", "https://", "#1", "<img", "<!--", "e" * 40))


@pytest.mark.parametrize(
    ("task", "content", "first"),
    [
        ("fuzz", {"cases": [], "processes": [], "profile": []}, "### ✅ correct: 38 of 38 fuzz cases"),
        ("profile", {"cases": [], "processes": []}, "### ✅ Profiled: `one` on the L4"),
    ],
)
def test_a_fuzz_run_or_a_profile_never_takes_the_verdicts_place(
    desk: Desk, tmp_path: Path, task: Any, content: dict[str, Any], first: str
) -> None:
    post(desk.bot, measured(desk, tmp_path, l4("slower")), POLICY)
    verdict, check = the_comment(desk), the_check(desk).copy()
    record_ = json.loads(named("profile_and_resources")) | {"checks": json.loads(named("slower"))["checks"]} | content
    record_["profile"] = [one | {"case": "one"} for one in record_["profile"]]
    folder = measured(desk, tmp_path, {"kernelgate-record-l4": {"run.json": json.dumps(record_).encode()}})
    assert post(desk.bot, folder, POLICY, task) == 0
    kept, new = desk.github.bodies(1)
    assert kept == verdict
    assert new.startswith(first)
    assert the_check(desk) == check
    assert desk.github.pulls[1].labels == ["performance: regressed"]


QUEUE = f"gh-readonly-queue/main/pr-1-{BASE_SHA}"
GROUP: dict[str, Any] = {
    "event": "merge_group",
    "head_sha": HEAD_SHA,
    "head_branch": QUEUE,
    "display_title": f"Merge group {BASE_SHA}..{HEAD_SHA}",
}


def queued(desk: Desk, tmp_path: Path, example: str, files: tuple[str, ...] = ("csrc/k.cuh",), **run: Any) -> int:
    """Posts what a group's run found; its pull request stands with another head."""
    desk.github.open_pull(head_sha="d" * 40, base_sha=BASE_SHA)
    desk.github.compared |= {(base, HEAD_SHA): list(files) for base in (BASE_SHA, "main")}
    jobs = [(job, "success", "") for job in ("plan / plan", "measure (l4) / measure")]
    return post(desk.bot, ran(desk, tmp_path, desk.github.add_run(None, **GROUP | run), jobs, l4(example)), POLICY)


def test_a_merge_group_gets_a_check_on_its_own_head_and_nothing_else(desk: Desk, tmp_path: Path) -> None:
    assert queued(desk, tmp_path, "faster") == 0
    check = the_check(desk)
    assert (check["name"], check["head_sha"], check["conclusion"]) == ("kernelgate verdict", HEAD_SHA, "success")
    assert desk.github.writes() == ["POST /check-runs"]
    assert "the description" not in check["output"]["summary"], "nobody can add to it in the queue"
    assert desk.outputs == {}, "it is not measured again: a queue merges without it, or ejects it"


@pytest.mark.parametrize(
    ("run", "files", "said"),
    [
        ({"display_title": "Widen the loads"}, ("csrc/k.cuh",), "run-name"),
        ({"display_title": f"Merge group {HEAD_SHA}..{HEAD_SHA}"}, ("csrc/k.cuh",), "run-name"),
        ({}, ("csrc/k.cuh", ".github/workflows/performance.yml"), "changes the workflows that measure it"),
    ],
    ids=["no title of ours", "its own base", "a workflow"],
)
def test_a_group_that_might_have_chosen_its_base_or_its_judge_passes_nothing(
    desk: Desk, tmp_path: Path, run: dict[str, Any], files: tuple[str, ...], said: str
) -> None:
    queued(desk, tmp_path, "faster", files, **run)
    check = the_check(desk)
    assert check["conclusion"] == "action_required"
    assert said in check["output"]["title"] + check["output"]["summary"]


def test_what_is_still_queued_before_a_group_may_change_its_workflows(desk: Desk, tmp_path: Path) -> None:
    """Else two commits of one pull request could: the first changes the workflow, which gives the second as base."""
    desk.github.open_pull(head_sha="d" * 40)
    desk.github.compared[BASE_SHA, HEAD_SHA] = ["csrc/k.cuh"]
    desk.github.compared["main", HEAD_SHA] = ["csrc/k.cuh", ".github/workflows/performance.yml"]
    assert read_run_info(ran(desk, tmp_path, desk.github.add_run(None, **GROUP))).changes_judges


def test_a_group_that_touches_no_kernel_passes(desk: Desk, tmp_path: Path) -> None:
    desk.github.open_pull(head_sha="d" * 40)
    desk.github.compared |= {(base, HEAD_SHA): ["README.md"] for base in (BASE_SHA, "main")}
    jobs = [("plan / plan", "success", ""), ("build", "skipped", ""), ("measure", "skipped", "")]
    assert post(desk.bot, ran(desk, tmp_path, desk.github.add_run(None, **GROUP), jobs), POLICY) == 0
    assert (the_check(desk)["head_sha"], the_check(desk)["conclusion"]) == (HEAD_SHA, "neutral")
