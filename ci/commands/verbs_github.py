"""The verbs that GitHub workflows call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelgate.bench.core.errors import UsageError
from kernelgate.ci.commands.step_answer import step_answer

if TYPE_CHECKING:
    from kernelgate.ci.github.bisect_request import SearchKind


@click.command("fetch")
@step_answer
@click.option("--run-id", required=True, type=click.IntRange(min=1), help="The workflow run that measured.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The folder to fill.")
@click.option("--head-sha", help="The measured commit, if no pull request started the run, …")
@click.option("--base-sha", help="… what it was compared with, …")
@click.option("--pull-request", type=click.IntRange(min=1), help="… and the pull request that gets the report.")
def fetch_(run_id: int, output: Path, head_sha: str | None, base_sha: str | None, pull_request: int | None) -> None:
    """Download what a workflow run left behind, as untrusted data.

    The pull request is found from the run's head commit through GitHub's API. Invalid artifacts are refused, and
    `kernelgate report --from` says so. Needs GITHUB_TOKEN and GITHUB_REPOSITORY.
    """
    from kernelgate.bench.record import Run
    from kernelgate.ci.github import client, fetch
    from kernelgate.ci.github.actions import Step

    if head_sha is None and (base_sha or pull_request):
        raise UsageError("--base-sha and --pull-request belong to --head-sha, the commit that was measured")
    asked = Run(head_sha=head_sha, base_sha=base_sha, pull_request=pull_request) if head_sha else None
    step = Step()
    info = fetch.fetch(client.connect(step), run_id, output, asked)
    records = len(list(output.glob("*.run.json")))
    step.output(pull_request=str(info.pull_request or ""), head_sha=info.head_sha, records=str(records))


@click.command()
@click.argument("body", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object: whether it `blocks`, and the `text` on it.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def template(body: Path | None, as_json: bool, policy_file: Path | None) -> int:
    """Is the pull request's description complete, and what does it claim?

    Reads BODY.md, or in a workflow the pull request of its event; there, the job summary lists what is missing.
    Exit codes: 0 nothing blocks, 1 a part that the policy requires is missing.
    """
    from kernelgate.ci.github import description
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.pipeline import default_branch

    if as_json:
        from kernelgate.ci.commands import answers

        found = description.of_file_or_event(Step(), default_branch.rules(policy_file).template, body)
        click.echo(answers.TemplateAnswer(blocks=found.blocks, text=description.as_text(found)).shown())
        return int(found.blocks)
    return description.review(Step(), default_branch.rules(policy_file).template, body)


@click.command()
@step_answer
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def plan(policy_file: Path | None) -> None:
    """In a workflow: what is this run to measure, and on which GPUs?

    Reads the event (pull request, push, schedule or dispatch), the changed files, the labels and the policy, and writes
    the plan to the step's outputs. Needs GITHUB_TOKEN.
    """
    from kernelgate.ci.github import plan
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.github.client import connect
    from kernelgate.ci.pipeline import default_branch

    step = Step()
    plan.announce(step, plan.plan(step, connect(step), default_branch.rules(policy_file).measure))


@click.command()
@step_answer
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def command(policy_file: Path | None) -> None:
    """In a workflow: answer a comment such as `/kernelgate bench`, which may name cases.

    For people with write access only; what is measured is the commit that was head when they asked. What accepts a
    regression is handed on to `kernelgate accept`. Needs GITHUB_TOKEN.
    """
    from kernelgate.ci.github import command
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.github.client import connect
    from kernelgate.ci.pipeline import default_branch

    step = Step()
    command.answer(step, connect(step), default_branch.rules(policy_file).measure)


@click.command()
@step_answer
@click.option("--pull-request", required=True, type=click.IntRange(min=1), help="The comment's, …")
@click.option("--head-sha", required=True, help="… the commit that was its head, …")
@click.option("--base-sha", required=True, help="… and what that is compared with.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The folder to fill.")
@click.option("--token", help="Whose check run says so, such as a GitHub App's; default: GITHUB_TOKEN.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def accept(
    pull_request: int, head_sha: str, base_sha: str, output: Path, token: str | None, policy_file: Path | None
) -> None:
    """In a workflow: record `/kernelgate accept CASE because REASON`, after `kernelgate command` let it pass.

    Judges the last measurement again and answers the comment. Where something was accepted, `accepted=true` is put
    out, and the folder has what `kernelgate report --from` posts. Needs GITHUB_TOKEN.
    """
    from kernelgate.bench.record import Run
    from kernelgate.bench.system import progress
    from kernelgate.ci.github import accept
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.github.assemble import Trusted
    from kernelgate.ci.github.client import connect
    from kernelgate.ci.pipeline import default_branch, nightly, prior

    step, rules = Step().with_token(token), default_branch.rules(policy_file)
    subject = Run(head_sha=head_sha, base_sha=base_sha, pull_request=pull_request)
    past, nights = prior.past(rules, progress.say), nightly.nights(progress.say)
    trusted = Trusted(default_branch.expected(rules), past, nights=nights)
    done = accept.accept(connect(step), subject, output, rules, trusted)
    records = len(list(output.glob("*.run.json"))) if done else 0
    step.output(accepted=str(done).lower(), records=str(records))


@click.command()
@step_answer
@click.option("--record", "measured", required=True, type=click.Path(path_type=Path), help="Of the default branch.")
@click.option("--label", required=True, help="The GPU's label in the policy, such as l4.")
@click.option("--force/--no-force", help="Even if the verdict is not improved.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def baseline(measured: Path, label: str, force: bool, policy_file: Path | None) -> None:
    """Propose a new baseline as a pull request if the record improves on the stored one; of a tag, a new release.

    Nothing is pushed to the default branch. Needs GITHUB_TOKEN and GITHUB_REPOSITORY.
    """
    from kernelgate.bench.system import progress
    from kernelgate.ci.github import baseline_pr
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.github.client import connect
    from kernelgate.ci.pipeline import prior
    from kernelgate.ci.policy import policy

    rules = policy.load(policy_file)
    past = prior.past(rules, progress.say)
    baseline_pr.refresh(connect(Step()), measured, label, rules, force, past)


@click.command()
@step_answer
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def culprits(folder: Path, policy_file: Path | None) -> None:
    """In a workflow: keep one issue for each commit that made a case slower, as `history culprits -o FOLDER` has them.

    An issue is closed, with a comment, once that was fixed or accepted, and reopened if it comes back; one that a
    person closed or opened is left alone. Needs GITHUB_TOKEN.
    """
    from kernelgate.ci.github import culprits
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.github.client import connect
    from kernelgate.ci.policy import policy

    culprits.put(connect(Step()), folder, policy.load(policy_file))


@click.command()
@step_answer
@click.option("--base-sha", help="The commit that is compared with, whose own libraries come first.")
def reuse(base_sha: str | None) -> None:
    """In a workflow: put what the default branch compiled into the build cache, so that a base is not compiled again.

    Only of runs that a push to the default branch or a schedule started. Whatever goes wrong is said: then everything
    is compiled. Needs GITHUB_TOKEN.
    """
    import tempfile

    from kernelgate.ci.github import trusted_runs
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.github.client import GitHubError, connect
    from kernelgate.ci.pipeline import hand_over

    step = Step()
    with tempfile.TemporaryDirectory(prefix="kernelgate-") as folder:
        try:
            found = trusted_runs.fetch_libraries(connect(step), base_sha or None, Path(folder))
        except GitHubError as error:
            step.warn(f"what the default branch compiled cannot be fetched: {error}")
            return
        step.log(f"{hand_over.take_over(found, step)} libraries of the default branch are in the cache")


@click.command()
@step_answer
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The SQLite file to write.")
def index(output: Path) -> None:
    """In a workflow: fetch the history's index, as the newest run of the default branch left it.

    Only of runs that a push to the default branch or a schedule started. The step's output `file` names it, and is
    empty where there is none: then nothing is known of the past. Needs GITHUB_TOKEN.
    """
    from kernelgate.ci.github import trusted_runs
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.github.client import GitHubError, connect

    step = Step()
    try:
        found = trusted_runs.fetch_index(connect(step), output)
    except GitHubError as error:
        step.warn(f"the history's index cannot be fetched: {error}")
        found = False
    step.output(file=str(output) if found else "")


@click.command()
@step_answer
@click.option("--head-sha", required=True, help="The commit whose library is about to be run.")
def admit(head_sha: str) -> None:
    """On the GPU runner: may this run measure this commit?

    A pull request's head must not have moved on, and the run of a fork must have been approved. Needs GITHUB_TOKEN and
    the variables of a workflow run. Exit codes: 0 yes, 3 no (why).
    """
    from kernelgate.ci.github import plan
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.github.client import connect

    step = Step()
    step.log(plan.admit(connect(step), step, head_sha))


@click.command()
@step_answer
@click.option("--good", required=True, help="A commit, branch or tag, …")
@click.option("--bad", default="", help="… and a later one. Default: the pull request's head, or the default branch's.")
@click.option("--case", default="", help="As `kernelgate cards` lists them.")
@click.option("--kind", type=click.Choice(["time", "fuzz", "build"]), default="time", show_default=True)
@click.option("--gpu", default="", help="The GPU's label in the policy. Default: its first one.")
@click.option("--number", type=click.IntRange(min=1), help="The issue or pull request where it was asked.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def ends(
    good: str, bad: str, case: str, kind: SearchKind, gpu: str, number: int | None, policy_file: Path | None
) -> None:
    """In a workflow: between which commits may be searched, and on which GPU?

    Both are commits of the default branch or of the pull request. Needs GITHUB_TOKEN.
    """
    from kernelgate.ci.github import bisect_request
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.github.client import connect
    from kernelgate.ci.pipeline import default_branch

    step, rules = Step(), default_branch.rules(policy_file).measure
    asked = bisect_request.BisectRequest(good, bad, case, kind, gpu)
    found = bisect_request.ends(connect(step), asked, number, rules)
    step.output(good=found.good, bad=found.bad, gpu=found.gpu.label, target=found.gpu.target)


@click.command()
@step_answer
@click.option("--from", "folder", required=True, type=click.Path(path_type=Path), help="What the search left behind.")
@click.option("--good", required=True, help="The commit after which was searched, …")
@click.option("--bad", required=True, help="… up to this one, both in full.")
@click.option("--case", default="", help="Which was asked for.")
@click.option("--kind", type=click.Choice(["time", "fuzz", "build"]), default="time", show_default=True)
@click.option("--number", type=click.IntRange(min=1), help="The issue or pull request that gets the answer.")
@click.option("--post", is_flag=True, help="Comment there, and in the job's summary. Otherwise it is printed.")
def bisected(folder: Path, good: str, bad: str, case: str, kind: SearchKind, number: int | None, post: bool) -> None:
    """In a workflow: say which commit a search found, from its answer as untrusted data. Needs GITHUB_TOKEN."""
    from kernelgate.ci.github import bisect_answer
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.github.bisect_answer import Searched
    from kernelgate.ci.github.client import connect

    bot = connect(Step())
    text = bisect_answer.text_of(bot, folder, Searched(good, bad, kind, case))
    if not post:
        bot.step.show(text)
    elif number is None:
        bot.step.summary(text)
    else:
        bisect_answer.put_search(bot, number, text)
