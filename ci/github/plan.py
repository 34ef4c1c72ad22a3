"""What a workflow run is to measure: decided from its event, the changed files, the labels and the policy."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from github import GithubException

from kernelgate.bench.core.documentation import page
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.record import Run
from kernelgate.ci.document import escape
from kernelgate.ci.document.escape import visible
from kernelgate.ci.github import client
from kernelgate.ci.github.actions import Event, EventPull, Step
from kernelgate.ci.github.client import Bot, patiently
from kernelgate.ci.policy.policy import Measure, RunnerGpu

_NAME = r"[A-Za-z0-9][A-Za-z0-9_.=-]{0,79}"
CASE = re.compile(rf"{_NAME}(?:/{_NAME})?", re.ASCII)
"""A case id, or CARD/ID, as it may be handed on to a command line; the verb that measures knows which there are."""
MAX_CASES = 16
SHA = re.compile(r"[0-9a-f]{40}")
SETS = ("quick", "full")
JUDGE_PATHS = ("bench/", "ci/", "kernelgate/", ".ci/", ".github/workflows/", ".github/actions/")
"""A change to these takes effect after the merge: what measures and judges is the default branch's."""
CARDS = ".ci/kernels/"
"""Where the cards are. Where nothing else is watched, there is none yet."""
NO_CARD = (
    "the default branch describes no kernel yet: a card, .ci/kernels/NAME.py, says how one is built, called and "
    f"compared ({page('cards.md')}), and the pull request that adds it is measured"
)


@dataclass(frozen=True)
class Plan:
    measure: bool
    reason: str
    gpus: tuple[RunnerGpu, ...] = ()
    run: Run = field(default_factory=Run)
    """What is to be measured: commits and pull request. Without a base the head is measured alone."""
    cases: tuple[str, ...] = ()
    set: str = "quick"
    pinned: str | None = None
    """The commit that is timed beside the default branch's head; None: the head is timed alone."""


def gpu_outputs(gpus: Sequence[RunnerGpu]) -> dict[str, str]:
    """The GPUs as a workflow's matrix reads them; and what is compiled for, as TORCH_CUDA_ARCH_LIST has it."""
    matrix = [{"label": gpu.label, "shards": gpu.shards} for gpu in gpus]
    return {"gpus": json.dumps(matrix), "targets": ";".join(sorted({gpu.target for gpu in gpus}))}


def plan(step: Step, bot: Bot, rules: Measure) -> Plan:
    """For the event of this run. Raises UsageError where what a person typed names nothing."""
    event = step.event()
    if event.pull_request is not None:
        return _of_pull_request(bot, rules, event, event.pull_request)
    if (group := event.merge_group) is not None:
        # As a pull request is planned. What stands before it in the queue belongs to its base.
        names = client.names_of(client.compared(bot, group.base_sha, group.head_sha)[1])
        why_not = skipped(names, queued_labels(bot, group.head_ref), rules)
        return _unless(why_not, "group", rules, Run(base_sha=group.base_sha, head_sha=group.head_sha))
    given = {key: str(value) for key, value in (event.inputs or {}).items() if value}
    if {"ref", "pull-request", "case", "set"} & given.keys():
        return _of_dispatch(bot, rules, given)
    head = step.environment.get("GITHUB_SHA", "")
    if not SHA.fullmatch(head):
        raise UsageError("GITHUB_SHA is not set: there is no commit to measure")
    # Nothing but merged code runs beside the default branch's head.
    if rules.pinned and not is_of(bot, rules.pinned, head):
        raise UsageError(f"measure.pinned of the policy is no commit of the default branch: {rules.pinned}")
    chosen = gpus(rules, given.get("gpu"))
    return Plan(True, "the default branch", chosen, Run(head_sha=head), pinned=rules.pinned or None)


def announce(step: Step, found: Plan) -> None:
    """Hands the plan on, in words without spaces, and says why where nothing is measured."""
    step.output(
        measure=str(found.measure).lower(),
        **gpu_outputs(found.gpus),
        base_sha=found.run.base_sha or "",
        head_sha=found.run.head_sha or "",
        pull_request=str(found.run.pull_request or ""),
        cases=" ".join(found.cases),
        set=found.set,
        pinned_sha=found.pinned or "",
    )
    if not found.measure:
        step.summary(f"Not measured: {escape.prose(found.reason)}.")
    step.log(f"{'measured' if found.measure else 'not measured'}: {found.reason}")


def commit(bot: Bot, ref: str) -> str:
    """The full name of a commit, branch or tag. Raises UsageError where there is none of that name."""

    def step() -> str:
        try:
            # `sha` alone would be taken from the address, without a look at GitHub.
            return str(bot.repository.get_commit(ref).raw_data["sha"])
        except GithubException as error:
            # GitHub answers 422 for a name that is no commit's.
            if error.status not in (404, 422):
                raise
            return ""

    if not re.fullmatch(r"[\w./-]{1,200}", ref, re.ASCII) or ".." in ref or ref.startswith(("-", "/")):
        raise UsageError(f"{visible(ref, 80)!r} is not a branch, tag or commit")
    found = patiently("commit", step, bot)
    if not SHA.fullmatch(found):
        raise UsageError(f"there is no branch, tag or commit {visible(ref, 80)!r}")
    return found


def is_of(bot: Bot, sha: str, tip: str) -> bool:
    """Whether `tip` has this commit in its history; what is no commit of the repository is in none."""
    try:
        return client.merge_base(bot, commit(bot, sha), tip) == sha
    except UsageError:
        return False


def watches_no_kernel(rules: Measure) -> bool:
    return rules.paths == (CARDS,)


DRAFT = "this is a draft"


def skipped(files: Sequence[str] | None, labels: Collection[str], rules: Measure, draft: bool = False) -> str | None:
    """Why a pull request with these files (None: too many to know) and labels is not measured; None where it is."""
    label = next((label for label in rules.skip_labels if label in labels), None)
    if label is not None:
        return f"the pull request has the label {label}"
    if watches_no_kernel(rules) and not any(name.startswith(CARDS) for name in files or ()):
        return NO_CARD
    if not client.touches(files, rules.paths):
        return "the pull request changes no measured path"
    return DRAFT if draft and rules.drafts == "on_ready" else None


def _of_pull_request(bot: Bot, rules: Measure, event: Event, shown: EventPull) -> Plan:
    head, pull = shown.head_sha, client.read_pull(bot, shown.number)
    files = patiently("changed files", lambda: client.changed_names(pull), bot)
    run = Run(base_sha=client.merge_base(bot, pull.base.sha, head), head_sha=head, pull_request=shown.number)
    why_not = skipped(files, [label.name for label in pull.labels], rules, pull.draft)
    if why_not is None and event.action == "edited" and "base" not in (event.changes or {}):
        # One with another base is measured again.
        why_not = "only the description was edited, and what was measured before is judged again"
    return _unless(why_not, "pull request", rules, run)


def _unless(why_not: str | None, what: str, rules: Measure, run: Run) -> Plan:
    if why_not is not None:
        return Plan(False, why_not, run=run)
    return Plan(True, f"the {what} touches what is measured", rules.gpus, run)


GROUP = "merge_group"
_QUEUE = re.compile(r"(?:refs/heads/)?gh-readonly-queue/.+/pr-([0-9]{1,9})-[0-9a-f]{40}")


def queued_pull(ref: str) -> int | None:
    """The pull request that GitHub made the branch of a merge queue's group for, if it is one."""
    return int(found[1]) if (found := _QUEUE.fullmatch(ref)) else None


def queued_labels(bot: Bot, ref: str) -> tuple[str, ...]:
    number = queued_pull(ref)
    return tuple(label.name for label in client.read_pull(bot, number).labels) if number else ()


def _of_dispatch(bot: Bot, rules: Measure, given: Mapping[str, str]) -> Plan:
    typed = given.get("pull-request", "").lstrip("#")
    if typed and not re.fullmatch(r"[1-9]\d{0,8}", typed, re.ASCII):
        raise UsageError(f"{visible(given['pull-request'], 40)!r} is not a pull-request number")
    number = int(typed) if typed else None
    if number is not None and "ref" in given:
        raise UsageError(f"give a ref or a pull request, not both: {visible(given['ref'], 40)!r} and {number}")
    if number is not None:
        pull = client.read_pull(bot, number)
        head, base = pull.head.sha, pull.base.sha
    else:
        head, base = commit(bot, given.get("ref", "HEAD")), client.default_branch(bot)
    against = commit(bot, given["base"]) if "base" in given else client.merge_base(bot, base, head)
    # The default branch itself has nothing to be compared with.
    alone = against == head and "base" not in given
    cases = [word for word in re.split(r"[ ,]+", given.get("case", "")) if word]
    if fault := case_fault(cases):
        raise UsageError(fault)
    if (suite := given.get("set", "quick")) not in SETS:
        raise UsageError(f"set is {visible(suite, 40)!r}; it may be {' or '.join(SETS)}")
    run = Run(base_sha=None if alone else against, head_sha=head, pull_request=number)
    why = f"pull request {number}" if number else "as asked for"
    return Plan(True, why, gpus(rules, given.get("gpu")), run, cases=tuple(dict.fromkeys(cases)), set=suite)


def gpus(rules: Measure, label: str | None) -> tuple[RunnerGpu, ...]:
    """Those of this label, else all. Raises UsageError where there is none."""
    if not label:
        return rules.gpus
    found = tuple(gpu for gpu in rules.gpus if gpu.label == label)
    if not found:
        known = ", ".join(gpu.label for gpu in rules.gpus)
        raise UsageError(f"the policy has no GPU {visible(label, 40)!r}; it has: {known}")
    return found


def case_fault(words: Sequence[str]) -> str:
    """Why these are no cases to ask for; empty where they are."""
    odd = next((word for word in words if not CASE.fullmatch(word)), None)
    if odd is not None:
        return f"not a case id: {visible(odd, 60)}; kernelgate cards lists them"
    return f"at most {MAX_CASES} cases at once; these are {len(words)}" if len(words) > MAX_CASES else ""


FORK_ENVIRONMENT = "kernelgate-forks"
"""The environment of .github/workflows/measure.yml whose reviewers approve the runs of forks."""
OURS = ("push", "schedule", "workflow_dispatch", "issue_comment")
"""Events of the default branch, or of people with write access; a comment's author was checked before."""


def admit(bot: Bot, step: Step, head_sha: str) -> str:
    """Why the run may measure `head_sha`, in a sentence. Raises KernelgateError where it may not."""
    name = step.environment.get("GITHUB_EVENT_NAME", "")
    if name in OURS:
        return f"admitted: {name} is an internal event"
    if name == GROUP:
        group = step.event().merge_group
        if group is None or group.head_sha != head_sha:
            raise KernelgateError(f"{head_sha[:12]} is not the head of the event's merge group")
        return f"admitted: {head_sha[:12]} is in the merge queue, where people with write access put it"
    if not name.startswith("pull_request"):
        raise KernelgateError(f"runs started by {name or 'nothing that is known'} are not measured")
    shown = step.event().pull_request
    if shown is None:
        raise KernelgateError("the event names no pull request")
    head, approved = client.read_pull(bot, shown.number).head.sha, shown.head_sha
    if approved != head_sha:
        raise KernelgateError(f"the run is about commit {approved[:12]}, and was asked to measure {head_sha[:12]}")
    if head != head_sha:
        raise KernelgateError(f"the pull request has moved on to {head[:12]}: its newer run applies")
    admitted = f"admitted: {head_sha[:12]} is the head of pull request {shown.number}"
    if shown.head_repository == bot.repository.full_name:
        return f"{admitted}, a branch of this repository"
    # PyGithub has no method for a run's approvals.
    address = f"{bot.repository.url}/actions/runs/{step.run_id}/approvals"
    names = [
        review["user"]["login"]
        for review in patiently("approvals", lambda: client.request(bot, "GET", address), bot)
        if review["state"] == "approved" and FORK_ENVIRONMENT in [each["name"] for each in review["environments"]]
    ]
    if not names:
        raise KernelgateError(
            f"this run of a fork was not approved: give the environment {FORK_ENVIRONMENT} required reviewers, "
            f"as {page('install.md')} says"
        )
    return f"{admitted}, approved by {', '.join(names)}"
