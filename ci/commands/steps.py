"""`kernelgate step …`: what GitHub workflows call; and `kernelgate template`, which people call, too."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from kernelgate.bench import record
from kernelgate.bench.build import library
from kernelgate.bench.core.errors import KernelgateError, UsageError, faults
from kernelgate.bench.record import Run
from kernelgate.bench.system import progress
from kernelgate.ci.commands.options import OUTPUT, OUTPUT_FOLDER, PATH, Answered, answers, with_rules
from kernelgate.ci.github import artifacts, baseline_pr, bisect, client, command, culprits, description, fetch, plan
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.assemble import Trusted
from kernelgate.ci.github.bisect import SearchKind
from kernelgate.ci.github.client import GitHubError
from kernelgate.ci.history import facts
from kernelgate.ci.pipeline import measured, prior, trusted_rules
from kernelgate.ci.policy.policy import Policy


@click.group()
def step() -> None:
    """The steps of GitHub workflows: each reads its event, and writes the step's outputs and a log."""


@step.command("fetch")
@click.option("--run-id", required=True, type=click.IntRange(min=1), help="The workflow run that measured.")
@click.option("-o", "--output", required=True, type=OUTPUT_FOLDER, help="The folder to fill.")
@click.option("--head-sha", help="The measured commit, if no pull request started the run, …")
@click.option("--base-sha", help="… what it was compared with, …")
@click.option("--pull-request", type=click.IntRange(min=1), help="… and the pull request that gets the report.")
@click.option("--pairs", default="", help="Instead, all pairs of commits: what `kernelgate history next` put out.")
def fetch_(
    run_id: int, output: Path, head_sha: str | None, base_sha: str | None, pull_request: int | None, pairs: str
) -> None:
    """Download what a workflow run left behind, as untrusted data.

    The pull request is found from the run's head commit through GitHub's API. Invalid artifacts are refused, and
    `kernelgate report --from` says so. Needs GITHUB_TOKEN and GITHUB_REPOSITORY.
    """
    if head_sha is None and (base_sha or pull_request):
        raise UsageError("--base-sha and --pull-request belong to --head-sha, the commit that was measured")
    asked = Run(head_sha=head_sha, base_sha=base_sha, pull_request=pull_request) if head_sha else None
    step = Step()
    try:
        compared = facts.COMPARED.validate_json(pairs) if pairs else ()
    except ValidationError as error:
        raise UsageError(f"--pairs is not what `kernelgate history next` puts out: {faults(error)}") from None
    info = fetch.fetch(client.connect(step), run_id, output, asked, pairs=compared)
    records = len(list(output.glob("*.run.json")))
    step.output(pull_request=str(info.run.pull_request or ""), head_sha=info.head_sha, records=str(records))


@dataclass(frozen=True)
class TemplateAnswer:
    blocks: bool
    text: str


@click.command()
@click.argument("body", required=False, type=PATH)
@answers(TemplateAnswer, "Print one JSON object: whether it `blocks`, and the `text` on it.")
@with_rules(trusted_rules.rules)
def template(body: Path | None, rules: Policy) -> Answered:
    """Is the pull request's description complete, and what does it claim?

    Reads BODY.md, or in a workflow the pull request of its event; there, the job summary lists what is missing.
    Exit codes: 0 nothing blocks, 1 a part that the policy requires is missing.
    """
    found = description.of_file_or_event(Step(), rules.template, body)
    blocks = bool(found.blocking)
    told = TemplateAnswer(blocks, description.as_text(found))
    return Answered(told, lambda: description.tell(Step(), found), int(blocks))


@step.command("plan")
@with_rules(trusted_rules.rules)
def plan_(rules: Policy) -> None:
    """What is this run to measure, and on which GPUs?

    Reads the event (pull request, push, schedule or dispatch), the changed files, the labels and the policy, and writes
    the plan to the step's outputs. Needs GITHUB_TOKEN.
    """
    step = Step()
    plan.announce(step, plan.plan(step, client.connect(step), rules.measure))


@step.command("command")
@with_rules(trusted_rules.rules)
def command_(rules: Policy) -> None:
    """Answer a comment such as `/kernelgate bench`, which may name cases.

    For people with write access only; what is measured is the commit that was head when they asked. What accepts a
    regression is handed on to `kernelgate step accept`. Needs GITHUB_TOKEN.
    """
    step = Step()
    command.answer(step, client.connect(step), rules.measure)


@step.command("accept")
@click.option("--pull-request", required=True, type=click.IntRange(min=1), help="The comment's pull request.")
@click.option("--head-sha", required=True, help="The commit that was its head at the time.")
@click.option("--base-sha", required=True, help="The commit that the head is compared with.")
@click.option("-o", "--output", required=True, type=OUTPUT_FOLDER, help="The folder to fill.")
@click.option("--token", help="Whose check run says so, such as a GitHub App's; default: GITHUB_TOKEN.")
@with_rules(trusted_rules.rules)
def accept_(pull_request: int, head_sha: str, base_sha: str, output: Path, token: str | None, rules: Policy) -> None:
    """Record `/kernelgate accept CASE because REASON`, after `kernelgate step command` let it pass.

    Judges the last measurement again and answers the comment. Where something was accepted, `accepted=true` is put
    out, and the folder has what `kernelgate report --from` posts. Needs GITHUB_TOKEN.
    """
    step = Step().with_token(token)
    subject = Run(head_sha=head_sha, base_sha=base_sha, pull_request=pull_request)
    past, nights = prior.past(progress.say), prior.nights(progress.say)
    trusted = Trusted(trusted_rules.expected(rules), past, nights=nights)
    done = command.accept(client.connect(step), subject, output, rules, trusted)
    records = len(list(output.glob("*.run.json"))) if done else 0
    step.output(accepted=str(done).lower(), records=str(records))


@step.command()
@click.option("--record", "proposed", required=True, type=PATH, help="Of the default branch.")
@click.option("--label", required=True, help="The GPU's label in the policy, such as l4.")
@click.option("--force/--no-force", help="Even if the verdict is not improved.")
@with_rules()
def baseline(proposed: Path, label: str, force: bool, rules: Policy) -> None:
    """Propose a new baseline as a pull request if the record improves on the stored one; of a tag, a new release.

    Nothing is pushed to the default branch. Needs GITHUB_TOKEN and GITHUB_REPOSITORY.
    """
    past = prior.past(progress.say)
    baseline_pr.refresh(client.connect(Step()), proposed, label, rules, force, past)


@step.command("culprits")
@click.argument("folder", type=PATH)
def culprits_(folder: Path) -> None:
    """Keep one issue for each commit that made a case slower, as `history culprits -o FOLDER` has them.

    An issue is closed, with a comment, once that was fixed or accepted, and reopened if it comes back; one that a
    person closed or opened is left alone. Needs GITHUB_TOKEN.
    """
    culprits.put(client.connect(Step()), folder)


@step.command()
@click.option("-o", "--output", required=True, type=OUTPUT, help="The SQLite file to write.")
def index(output: Path) -> None:
    """Fetch the history's index, as the newest run of the default branch left it.

    Only of runs that a push to the default branch or a schedule started. The step's output `file` names it, and is
    empty where there is none: then nothing is known of the past. Needs GITHUB_TOKEN.
    """
    step = Step()
    try:
        found = artifacts.fetch_index(client.connect(step), output)
    except GitHubError as error:
        step.warn(f"the history's index cannot be fetched: {error}")
        found = False
    step.output(file=str(output) if found else "")


@step.command("measured")
@click.option("--base-library", required=True, type=PATH, help="What the base was compiled to, …")
@click.option("--head-library", required=True, type=PATH, help="… and the head.")
@click.option("--gpu", required=True, help="The GPU's label in the policy.")
@click.option("-o", "--output", required=True, type=OUTPUT, help="Where the run record goes.")
def measured_(base_library: Path, head_library: Path, gpu: str, output: Path) -> None:
    """Take the record of a queued pull request where a merge queue's group is the same machine code on both sides.

    Then `measured=true` is put out. Whatever keeps it from being used is said: then the group is measured. Needs
    GITHUB_TOKEN.
    """
    step = Step()
    try:
        both = library.read_all(base_library), library.read_all(head_library)
        with tempfile.TemporaryDirectory(prefix="kernelgate-") as folder:
            number, known = fetch.record_of(client.connect(step), gpu, Path(folder))
        found = measured.as_this_run(known, number, *both)
        record.write(found, output)
    except KernelgateError as error:
        step.log(f"to be measured: {error}")
        step.output(measured="false")
        return
    step.log(found.notes[0].text)
    step.output(measured="true")


@step.command("admit")
@click.option("--head-sha", required=True, help="The commit whose library is about to be run.")
def admit_(head_sha: str) -> None:
    """On the GPU runner: may this run measure this commit?

    A pull request's head must not have moved on, and the run of a fork must have been approved. Needs GITHUB_TOKEN and
    the variables of a workflow run. Exit codes: 0 yes, 3 no (why).
    """
    step = Step()
    step.log(plan.admit(client.connect(step), step, head_sha))


@step.command()
@click.option("--good", required=True, help="A commit, branch or tag, …")
@click.option("--bad", default="", help="… and a later one. Default: the pull request's head, or the default branch's.")
@click.option("--case", default="", help="As `kernelgate cards` lists them.")
@click.option("--kind", type=click.Choice(["time", "fuzz", "build"]), default="time", show_default=True)
@click.option("--gpu", default="", help="The GPU's label in the policy. Default: its first one.")
@click.option("--number", type=click.IntRange(min=1), help="The issue or pull request where it was asked.")
@with_rules(trusted_rules.rules)
def ends(number: int | None, rules: Policy, **asked: Any) -> None:
    """Between which commits may be searched, and on which GPU?

    Both are commits of the default branch or of the pull request. Needs GITHUB_TOKEN.
    """
    step = Step()
    first, last, runner = bisect.ends(client.connect(step), bisect.BisectRequest(**asked), number, rules.measure)
    step.output(good=first, bad=last, gpu=runner.label, target=runner.target)


@step.command()
@click.option("--from", "folder", required=True, type=PATH, help="What the search left behind.")
@click.option("--good", required=True, help="The commit after which was searched, …")
@click.option("--bad", required=True, help="… up to this one, both in full.")
@click.option("--case", default="", help="Which was asked for.")
@click.option("--kind", type=click.Choice(["time", "fuzz", "build"]), default="time", show_default=True)
@click.option("--number", type=click.IntRange(min=1), help="The issue or pull request that gets the answer.")
@click.option("--post", is_flag=True, help="Comment there, and in the job's summary. Otherwise it is printed.")
def bisected(folder: Path, good: str, bad: str, case: str, kind: SearchKind, number: int | None, post: bool) -> None:
    """Say which commit a search found, from its answer as untrusted data. Needs GITHUB_TOKEN."""
    bot = client.connect(Step())
    text = bisect.text_of(bot, folder, bisect.BisectRequest(good, bad, case, kind))
    if not post:
        click.echo(text)
    elif number is None:
        bot.step.summary(text)
    else:
        bisect.put_search(bot, number, text)
