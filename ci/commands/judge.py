"""The commands that judge and explain what was measured. They need no GPU."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from kernelgate.bench import record
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.system import progress
from kernelgate.ci.commands import options
from kernelgate.ci.commands.options import MORE_THAN_0, OUTPUT, PATH, Answered, answers, argument, with_rules
from kernelgate.ci.document import render
from kernelgate.ci.explain import analyze as profiles
from kernelgate.ci.explain import next_step
from kernelgate.ci.explain.analyze import AnalysesAnswer
from kernelgate.ci.judge import verdict as judging
from kernelgate.ci.judge.case import RecordVerdict
from kernelgate.ci.pipeline import prior, trusted_rules
from kernelgate.ci.policy import policy as policies
from kernelgate.ci.policy.policy import DecidingNumber, Policy
from kernelgate.ci.report.build import BuiltReport, compared, reported
from kernelgate.ci.report.links import NO_LINKS
from kernelgate.ci.report.page import write as write_page


@click.command()
@argument("records", nargs=-1, required=True, type=PATH, about="Run records")
@click.option("--baseline", type=PATH, help="Compare the heads with the ones in this baseline file.")
@answers(RecordVerdict, "Print one JSON object a line for each record.")
@with_rules(presets=True)
@click.option("--details", is_flag=True, help="Also print what the comment folds: statistics, profile, machine.")
def compare(records: tuple[Path, ...], baseline: Path | None, rules: Policy, details: bool) -> Answered:
    """Judge run records: improved, regressed, slower, faster, equivalent or inconclusive, and how sure that is.

    The verdict is the last line of each record's text, in the words of the comment.

    Exit codes: 0 improved, 1 regressed, wrong or what else blocks, 2 no gate acts (equivalent, slower or faster: the
    sentence says which), 3 inconclusive, such as a regression that is not yet confirmed, or cannot be judged (why), 64
    usage. With several records the worst of them: 1, then 3, 2, 0.
    """
    found = list(judging.compare(records, rules, baseline, prior.past(progress.say)))
    reports = [compared(*one, rules, named=len(records) > 1) for one in found]
    code = min((code for _, code in reports), key=judging.SEVERITY.index)
    text = "\n".join(render.terminal(one, details) for one, _ in reports).removesuffix("\n")
    return Answered("\n".join(judging.as_json(verdict) for verdict, _ in found), text, code)


TASKS = click.Choice(["bench", "profile", "fuzz"])


@dataclass(frozen=True)
class RenderedReport:
    markdown: str
    files: tuple[str, ...]


@click.command()
@click.argument("run", required=False, type=PATH)
@click.option("--from", "folder", type=PATH, help="The folder that `kernelgate step fetch` filled.")
@click.option("--post", is_flag=True, help="With --from: post comment, check run, label and job summary.")
@click.option("--task", type=TASKS, default="bench", show_default=True, help="What ran; only bench gets a check run.")
@click.option("--page", help="With --post: the address of the page, which the comment links to.")
@click.option("--token", help="With --post: whose check run it is, such as a GitHub App's; default: GITHUB_TOKEN.")
@click.option("--baseline", type=PATH, help="Also compare the head with this baseline.")
@click.option("--html", type=OUTPUT, help="Write the page, one file that opens anywhere.")
@click.option("-o", "--output", type=OUTPUT, help="Write the comment's Markdown instead of printing it.")
@answers(RenderedReport, "Print one JSON object: the comment's `markdown`, and `files` written.")
@with_rules(trusted_rules.rules, presets=True)
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
    rules: Policy,
) -> Answered:
    """Render the pull-request comment of a run record, and the HTML page with its plots.

    With --from it is the comment on everything that a workflow run left behind, with the pull request's claims; --post,
    which needs GITHUB_TOKEN and GITHUB_REPOSITORY, puts it on the pull request. KERNELGATE_BOT names the login that the
    token posts as, unless that is a workflow's own.

    In a terminal the comment is printed as it would look; anywhere else, and with -o, it is Markdown. The exit code
    says only whether it could be rendered; `kernelgate compare` gives the verdict as an exit code.
    """
    past = prior.past(progress.say)
    read = [one for one in (run, baseline) if one and one.is_file()]
    for written in (one for one in (output, html) if one and one.is_file()):
        if any(map(written.samefile, read)):
            raise UsageError(f"{written} is a record, which the result would replace: name another file")
    if (run is None) == (folder is None) or (post and folder is None):
        needed = "a run record, or --from and a folder of `kernelgate step fetch`; --post needs --from"
        raise UsageError(f"Missing argument: give {needed}")
    if post and (click.get_current_context().params["as_json"] or html or output):
        raise UsageError("--post prints and writes nothing: render by a call of its own, with --from")
    if folder is not None:
        from kernelgate.ci.github import assemble, client, fetch, publish
        from kernelgate.ci.github.actions import Step

        trusted = assemble.Trusted(trusted_rules.expected(rules), past, nights=prior.nights(progress.say))
        if post:
            bot = client.connect(Step().with_token(token))
            return Answered("", "", publish.post(bot, folder, rules, task, page, trusted))
        info = fetch.read_run_info(folder)
        found: BuiltReport = assemble.assemble(folder, info, rules, task, trusted)
        links = assemble.places(info)
    elif run is not None:
        stored = (baseline.name, record.read(baseline)) if baseline else None
        measured = record.read(run)
        found = reported(measured, rules, str(run), stored, past(measured))
        links = NO_LINKS
    comment = render.comment(found.report)
    files = {html: write_page(found, rules.gates, links)} if html else {}
    files |= {output: comment} if output else {}
    told = RenderedReport(comment, tuple(map(str, files)))
    return Answered(told, "" if output else lambda: render.show(found.report, sys.stdout), files=files)


@click.command()
@argument("report", type=PATH, about="Of Nsight Compute")
@click.option("--against", type=PATH, help="An earlier report: say what changed since.")
@answers(AnalysesAnswer, "Print one JSON object: `kernels`, a list in the report's order.")
def analyze(report: Path, against: Path | None) -> Answered:
    """Name the bottleneck of each kernel in an Nsight Compute REPORT, and what to try next. Needs no GPU."""
    analyses = profiles.analyze(report)
    before = profiles.analyze(against) if against else ()
    return Answered(profiles.to_answer(analyses, before), profiles.to_text(analyses, before))


@dataclass(frozen=True)
class DecideAnswer:
    priority: str
    sentence: str
    command: str
    stops: bool
    """Profile before anything else; exit code 1."""
    keep: str | None
    """With --before-ms: whether the fix is worth keeping."""


@click.command()
@argument("speedup", type=MORE_THAN_0, about="Times as fast as the reference")
@argument("milliseconds", type=MORE_THAN_0, about="Of a call")
@click.option("--kernel-ms", type=MORE_THAN_0, help="Of its kernels alone, such as the record's graph_us / 1000.")
@click.option("--before-ms", type=MORE_THAN_0, help="Of a call before the last fix: says whether to keep it.")
@answers(DecideAnswer)
@with_rules()
def decide(
    speedup: float, milliseconds: float, kernel_ms: float | None, before_ms: float | None, rules: Policy
) -> Answered:
    """Say what to do next, from SPEEDUP over the reference (0.8 is slower) and the MILLISECONDS of one call.

    Exit codes: 0, 1 below the policy's gates.reference_min: stop and profile, 64 usage.
    """
    step = next_step.decide(speedup, milliseconds, rules.gates.reference_min, kernel_ms)
    keep = None if before_ms is None else next_step.worth_keeping(before_ms, milliseconds)
    told = DecideAnswer(step.priority, step.sentence, step.command, step.stops, keep)
    lines = [*([keep] if keep is not None else []), step.sentence, f"Next: {step.command}"]
    return Answered(told, "\n".join(lines), int(step.stops))


@dataclass(frozen=True)
class DecidingNumbers:
    numbers: tuple[DecidingNumber, ...]


@click.command()
@click.argument("words", nargs=-1)
@answers(DecidingNumbers)
@options.policy_file
@options.preset
def policy(words: tuple[str, ...], policy_file: Path | None, preset: str) -> Answered:
    """Print every number that decides, with its source: the file, a preset, the default, or a constant's module.

    WORDS: only those whose name holds one of them, with their reasons.
    """
    every = policies.numbers(policy_file, preset)
    chosen = tuple(one for one in every if not words or any(word.lower() in one.name.lower() for word in words))
    if not chosen:
        raise UsageError(f"no number that decides has a name with {' or '.join(words)}: `kernelgate policy` prints all")
    lines = [f"{one.name} = {one.value}  ({one.source})" for one in chosen]
    if words:
        lines = [f"{line}\n    {one.reason}" if one.reason else line for line, one in zip(lines, chosen, strict=True)]
    return Answered(DecidingNumbers(chosen), "\n".join(lines))
