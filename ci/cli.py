"""The verbs. Each one is thin: it reads its words, calls one function, and turns the result into an exit code.

Heavy imports (torch, scipy, jinja2) stay inside the verbs, so that `kernelgate --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from bench.errors import KernelgateError, UsageError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="kernelgate")
def cli() -> None:
    """Continuous integration for CUDA kernels: build, fuzz, duel, judge, and say so in one comment."""


@cli.command()
@click.argument("records", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--baseline", type=click.Path(path_type=Path), help="Compare the heads with the ones in this baseline file."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line for each record.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
@click.option("--profile", default="default", show_default=True, help="The policy's profile, such as strict.")
def compare(
    records: tuple[Path, ...], baseline: Path | None, as_json: bool, policy_file: Path | None, profile: str
) -> int:
    """Judge run records: improved, regressed, equivalent or inconclusive, and how sure that is.

    Exit codes: 0 improved, 1 regressed, 2 no significant difference, 3 cannot be judged (why), 64 usage. With several
    records the worst of them: 1, then 3, 2, 0.
    """
    from ci import compare, policy

    codes = []
    for verdict in compare.compare(records, policy.load(policy_file, profile), baseline):
        click.echo(compare.as_json(verdict) if as_json else compare.as_text(verdict))
        codes.append(compare.exit_code(verdict))
    return compare.worst_exit_code(codes)


@cli.command()
@click.argument("run", required=False, type=click.Path(path_type=Path))
@click.option("--from", "folder", type=click.Path(path_type=Path), help="The folder that `kernelgate fetch` filled.")
@click.option("--post", is_flag=True, help="With --from: post comment, check run, label and job summary.")
@click.option("--baseline", type=click.Path(path_type=Path), help="Say as well how the head stands to this baseline.")
@click.option("--html", type=click.Path(path_type=Path), help="Write the page, one file that opens anywhere.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write the comment's Markdown instead of printing it."
)
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
@click.option("--profile", default="default", show_default=True, help="The policy's profile, such as strict.")
def report(
    run: Path | None,
    folder: Path | None,
    post: bool,
    baseline: Path | None,
    html: Path | None,
    output: Path | None,
    policy_file: Path | None,
    profile: str,
) -> int:
    """Render the pull-request comment of a run record, and the HTML page with its plots.

    With --from it is the comment on everything that a workflow run left behind, and --post puts it on the pull
    request (needs GITHUB_TOKEN and GITHUB_REPOSITORY).

    In a terminal the comment is printed as it would look; anywhere else, and with -o, it is Markdown. The exit code
    says only whether it could be rendered; `kernelgate compare` gives the verdict as an exit code.
    """
    from rich.console import Console

    from bench import record
    from ci import policy, render
    from ci.report import judged_report

    rules = policy.load(policy_file, profile)
    if (run is None) == (folder is None) or (post and folder is None):
        raise UsageError(
            "give a run record, or --from with a folder that `kernelgate fetch` filled; --post needs --from"
        )
    if folder is not None:
        from ci import fetch, github, posting
        from ci.actions import Step

        if post:
            return posting.post(github.connect(Step()), folder, rules)
        said = posting.say(folder, fetch.read_target(folder), rules, None).report
    elif run is not None:
        stored = (baseline.name, record.read(baseline)) if baseline else None
        said = judged_report(record.read(run), rules, str(run), stored)
    if html:
        render.write(render.page(said), html)
    if output:
        render.write(render.comment(said), output)
    else:
        render.show(render.comment(said), Console())
    return 0


@cli.command("fetch")
@click.option("--run-id", required=True, type=click.IntRange(min=1), help="The workflow run that measured.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The folder to fill.")
@click.option("--pull-request", type=click.IntRange(min=1), help="Where the run is not the pull request's own; …")
@click.option("--head-sha", help="… with the commit that was measured.")
def fetch_(run_id: int, output: Path, pull_request: int | None, head_sha: str | None) -> None:
    """Take in what a workflow run left behind, as data that an enemy may have written.

    The pull request is found from the run's head commit through GitHub's API. What does not fit is refused, and
    `kernelgate report --from` says so. Needs GITHUB_TOKEN and GITHUB_REPOSITORY.
    """
    from ci import fetch, github
    from ci.actions import Step

    step = Step()
    target = fetch.fetch(github.connect(step), run_id, output, pull_request, head_sha)
    records = len(list(output.glob("*.run.json")))
    step.output(pull_request=str(target.pull_request or ""), head_sha=target.head_sha, records=str(records))


@cli.command()
@click.argument("body", required=False, type=click.Path(path_type=Path))
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def template(body: Path | None, policy_file: Path | None) -> int:
    """Is the pull request's description complete, and what does it claim?

    Reads BODY.md, or in a workflow the pull request of its event; there, what is missing stands in the job summary.
    Exit codes: 0 nothing blocks, 1 something is missing that policy says must be there.
    """
    from ci import policy, review
    from ci.actions import Step

    return review.review(Step(), policy.load(policy_file).template, body)


@cli.command()
@click.argument("text", type=click.Path(path_type=Path))
@click.option("--pull-request", required=True, type=click.IntRange(min=1))
@click.option("--topic", required=True, help="One comment for each topic, such as profile; it is edited in place.")
def comment(text: Path, pull_request: int, topic: str) -> int:
    """Put a Markdown file that kernelgate wrote on a pull request, as the bot's one comment on a topic.

    Needs GITHUB_TOKEN, GITHUB_REPOSITORY and GITHUB_RUN_ID.
    """
    from ci import github, posting
    from ci.actions import Step

    return posting.post_text(github.connect(Step()), text, pull_request, topic)


@cli.command()
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def plan(policy_file: Path | None) -> None:
    """In a workflow: what is this run to measure, and on which GPUs?

    Reads the event (pull request, push, schedule or dispatch), the changed files, the labels and the policy, and hands
    the answer on as outputs. Needs GITHUB_TOKEN.
    """
    from ci import plan, policy
    from ci.actions import Step
    from ci.github import connect

    step = Step()
    plan.announce(step, plan.plan(step, connect(step), policy.load(policy_file).measure))


@cli.command()
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def command(policy_file: Path | None) -> None:
    """In a workflow: answer a comment such as `/kernelgate bench s512_b32_h8_d64_fp16`.

    For people with write access only; what is measured is the commit that was head when they asked. Needs GITHUB_TOKEN.
    """
    from ci import command, policy
    from ci.actions import Step
    from ci.github import connect

    step = Step()
    command.answer(step, connect(step), policy.load(policy_file).measure)


@cli.command()
@click.option("--head-sha", required=True, help="The commit whose library is about to be run.")
def admit(head_sha: str) -> None:
    """On the GPU runner: may this run measure this commit?

    A pull request's head must not have moved on, and the run of a fork must have been approved. Needs GITHUB_TOKEN and
    the variables of a workflow run. Exit codes: 0 yes, 3 no (why).
    """
    from ci import admit
    from ci.actions import Step
    from ci.github import connect

    step = Step()
    step.log(admit.admit(connect(step), step, head_sha))


def main() -> None:
    """The `kernelgate` command. Errors that a user can mend are printed in a sentence, never as a traceback."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs one verb and returns its exit code: a verb returns its own, errors carry theirs.

    An option may also be a variable, such as KERNELGATE_BENCH_CASE for `bench --case`: that is how workflows hand on
    what people typed, which then never meets a shell.
    """
    try:
        code = cli.main(arguments, prog_name="kernelgate", standalone_mode=False, auto_envvar_prefix="KERNELGATE")
    except click.ClickException as error:
        error.show()
        return UsageError.exit_code
    except click.Abort:
        click.echo("kernelgate: interrupted", err=True)
        return 130
    except KernelgateError as error:
        click.echo(f"kernelgate: {error}", err=True)
        if "KERNELGATE_FAILURE" in os.environ:
            from ci import failure

            failure.note(error, arguments[0])
        return error.exit_code
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    main()
