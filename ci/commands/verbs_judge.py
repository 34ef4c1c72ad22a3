"""The verbs that judge and explain what was measured. They need no GPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from kernelgate.bench.core.errors import UsageError


@click.command()
@click.argument("report", type=click.Path(path_type=Path))
@click.option("--against", type=click.Path(path_type=Path), help="An earlier report: say what changed since.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: `kernels`, a list in the report's order.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def analyze(report: Path, against: Path | None, as_json: bool, policy_file: Path | None) -> None:
    """Name the bottleneck of each kernel in an Nsight Compute REPORT, and what to try next. Needs no GPU."""
    from kernelgate.ci.explain import analyze
    from kernelgate.ci.policy import policy
    from kernelgate.ci.report import thresholds

    limits = thresholds.bottleneck_limits(policy.load(policy_file))
    analyses = analyze.analyze(report, limits)
    before = analyze.analyze(against, limits) if against else ()
    click.echo((analyze.to_json if as_json else analyze.to_text)(analyses, before))


@click.command()
@click.argument("speedup", type=float)
@click.argument("milliseconds", type=float)
@click.option("--kernel-ms", type=float, help="Of the call's kernels alone, such as the record's graph_us / 1000.")
@click.option("--before-ms", type=float, help="Of a call before the last fix: says whether to keep it.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def decide(
    speedup: float,
    milliseconds: float,
    kernel_ms: float | None,
    before_ms: float | None,
    as_json: bool,
    policy_file: Path | None,
) -> int:
    """Say what to do next, from SPEEDUP over the reference (0.8 is slower) and the MILLISECONDS of one call.

    Exit codes: 0, 1 below the policy's gates.reference_min: stop and profile, 64 usage.
    """
    from kernelgate.ci.commands import answers
    from kernelgate.ci.explain import next_step
    from kernelgate.ci.policy import policy
    from kernelgate.ci.report import thresholds

    bands = thresholds.bands(policy.load(policy_file))
    decision = next_step.decide(speedup, milliseconds, bands, kernel_ms)
    keep = None if before_ms is None else next_step.worth_keeping(before_ms, milliseconds, bands)
    if as_json:
        said = answers.DecideAnswer(
            priority=decision.priority.value,
            sentence=decision.sentence,
            command=decision.command,
            stops=decision.stops,
            keep=keep,
        )
        click.echo(said.shown())
        return int(decision.stops)
    if keep is not None:
        click.echo(keep)
    click.echo(decision.sentence)
    click.echo(f"Next: {decision.command}")
    return int(decision.stops)


@click.command()
@click.argument("records", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--baseline", type=click.Path(path_type=Path), help="Compare the heads with the ones in this baseline file."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line for each record.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
@click.option("--preset", default="default", show_default=True, help="The policy's preset, such as strict.")
@click.option("--details", is_flag=True, help="Also print what the comment folds: statistics, profile, machine.")
def compare(
    records: tuple[Path, ...],
    baseline: Path | None,
    as_json: bool,
    policy_file: Path | None,
    preset: str,
    details: bool,
) -> int:
    """Judge run records: improved, regressed, slower, faster, equivalent or inconclusive, and how sure that is.

    The verdict is the last line of each record's text, in the words of the comment.

    Exit codes: 0 improved, 1 regressed, 2 no gate acts (equivalent, slower or faster: the sentence says which), 3
    inconclusive, such as a regression that is not yet confirmed, or cannot be judged (why), 64 usage. With several
    records the worst of them: 1, then 3, 2, 0.
    """
    from kernelgate.bench.system import progress
    from kernelgate.ci.document import terminal
    from kernelgate.ci.judge import compare
    from kernelgate.ci.pipeline import prior
    from kernelgate.ci.policy import policy
    from kernelgate.ci.report.build import compared_report

    rules = policy.load(policy_file, preset)
    past = prior.past(rules, progress.say)
    codes = []
    for number, one in enumerate(compare.compare(records, rules, baseline, past)):
        if as_json:
            click.echo(compare.as_json(one.verdict))
        else:
            said = compared_report(one, rules, named=len(records) > 1)
            click.echo(("\n" if number else "") + terminal.text(said, details), nl=False)
        codes.append(compare.exit_code(one.verdict))
    return compare.worst_exit_code(codes)


@click.command()
@click.argument("run", required=False, type=click.Path(path_type=Path))
@click.option("--from", "folder", type=click.Path(path_type=Path), help="The folder that `kernelgate fetch` filled.")
@click.option("--post", is_flag=True, help="With --from: post comment, check run, label and job summary.")
@click.option(
    "--task",
    type=click.Choice(["bench", "profile", "fuzz"]),
    default="bench",
    show_default=True,
    help="What the run was for; all but bench get a comment of their own, and no check run or label.",
)
@click.option("--page", help="With --post: the address of the page, which the comment links to.")
@click.option("--token", help="With --post: whose check run it is, such as a GitHub App's; default: GITHUB_TOKEN.")
@click.option("--baseline", type=click.Path(path_type=Path), help="Also compare the head with this baseline.")
@click.option("--html", type=click.Path(path_type=Path), help="Write the page, one file that opens anywhere.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write the comment's Markdown instead of printing it."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object: the comment's `markdown`, and `files` written.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
@click.option("--preset", default="default", show_default=True, help="The policy's preset, such as strict.")
def report(
    run: Path | None,
    folder: Path | None,
    post: bool,
    task: Literal["bench", "profile", "fuzz"],
    page: str | None,
    token: str | None,
    baseline: Path | None,
    html: Path | None,
    output: Path | None,
    as_json: bool,
    policy_file: Path | None,
    preset: str,
) -> int:
    """Render the pull-request comment of a run record, and the HTML page with its plots.

    With --from it is the comment on everything that a workflow run left behind, with the pull request's claims; --post,
    which needs GITHUB_TOKEN and GITHUB_REPOSITORY, puts it on the pull request. KERNELGATE_BOT names the login that the
    token posts as, unless that is a workflow's own.

    In a terminal the comment is printed as it would look; anywhere else, and with -o, it is Markdown. The exit code
    says only whether it could be rendered; `kernelgate compare` gives the verdict as an exit code.
    """
    from kernelgate.bench import record
    from kernelgate.bench.core import files
    from kernelgate.bench.system import progress
    from kernelgate.ci.commands import answers
    from kernelgate.ci.document import render
    from kernelgate.ci.pipeline import default_branch, prior
    from kernelgate.ci.report.build import reported
    from kernelgate.ci.report.page import write as write_page

    rules = default_branch.rules(policy_file, preset)
    past = prior.past(rules, progress.say)
    if (run is None) == (folder is None) or (post and folder is None):
        raise UsageError(
            "Missing argument: give a run record, or --from and a folder of `kernelgate fetch`; --post needs --from"
        )
    if post and as_json:
        raise UsageError("--post prints nothing that --json could stand for")
    if post and (html or output):
        raise UsageError("--post writes no file: render the page by a call of its own, with --from and --html")
    for asked in filter(None, (html, output)):
        files.try_file(asked)
    if folder is not None:
        from kernelgate.ci.github import client, publish
        from kernelgate.ci.github.actions import Step
        from kernelgate.ci.github.assemble import Trusted
        from kernelgate.ci.pipeline import nightly

        trusted = Trusted(default_branch.expected(rules), past, nights=nightly.nights(progress.say))
        if post:
            return publish.post(client.connect(Step().with_token(token)), folder, rules, task, page, trusted)
        ready = publish.prepare(folder, rules, task, trusted)
        built, page_text = ready.posting.report, publish.page_of(ready, rules)
    elif run is not None:
        stored = (baseline.name, record.read(baseline)) if baseline else None
        measured = record.read(run)
        found = reported(measured, rules, str(run), stored, past(measured))
        built, page_text = found.report, write_page(found, rules.gates)
    if html:
        files.write(html, page_text)
    if output:
        files.write(output, render.comment(built))
    if as_json:
        written = tuple(str(path) for path in (html, output) if path)
        click.echo(answers.ReportAnswer(markdown=render.comment(built), files=written).shown())
    elif not output:
        render.show(built, sys.stdout)
    return 0
