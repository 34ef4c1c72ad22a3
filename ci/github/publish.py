"""Puts what assemble.py decided on the pull request and into the job summary, as far as the token allows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.document import escape, render
from kernelgate.ci.document.model import Code, Line, Link, Mark
from kernelgate.ci.github import description
from kernelgate.ci.github.assemble import ATTEMPTS, NOTHING_TRUSTED, Posting, Task, Trusted, assemble
from kernelgate.ci.github.check_run import Annotation, CheckRun, Level, begin_check, end_check, put_check
from kernelgate.ci.github.client import Bot, DeniedError, GitHubError
from kernelgate.ci.github.fetch import RunInfo, read_run_info
from kernelgate.ci.github.plan import FORK_ENVIRONMENT
from kernelgate.ci.github.upsert import VERDICTS, Posted, Stamp, put_comment, put_labels, put_results
from kernelgate.ci.judge import correctness
from kernelgate.ci.judge.case import Outcome
from kernelgate.ci.judge.gate import SHARED_COMMIT, UNTRUSTED, BlockCode, Fault, Label
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import correctness as words
from kernelgate.ci.report import remarks
from kernelgate.ci.report.gpu import GpuReport
from kernelgate.ci.report.headline import cause, with_consequence
from kernelgate.ci.report.speed import results

MAX_FINDINGS = 20
MAX_WARNINGS = 20
MAX_LINE = 10**7

_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_SOURCE = re.compile(r"[\w.+ -][\w./+ -]{0,250}", re.ASCII)
_COMPILER = re.compile(r"(?P<path>[\w./-]+\.(?:cuh?|cpp|h|hpp|py))[:(](?P<line>\d{1,7})")
PULLS, CHECKS = "pull-requests: write", "checks: write"


def post(
    bot: Bot,
    folder: Path,
    rules: Policy,
    task: Task = "bench",
    page: str | None = None,
    trusted: Trusted = NOTHING_TRUSTED,
) -> int:
    """Posts what the folder holds: comment, check run, label, job summary. 0 posted or rightly left out, 3 not posted.
    `page`: the address of the HTML page. What the token may not do is named in the job summary."""
    info = read_run_info(folder)
    if info.under_way:
        return _exit_code(_post_awaited(bot, info))
    if info.shared_head:
        return _post_shared(bot, info)
    posting = assemble(folder, info, rules, task, replace(trusted, page=page))
    if posting.missed:
        # A check would pass for it.
        return _post_nothing(bot, info, "the commit was never measured; /kernelgate bench does it")
    bot.step.summary(render.comment(posting.report, render.COMMENT_LIMIT))
    texts = [render.comment(posting.report, limit) for limit in (render.COMMENT_LIMIT - 300, render.COMMENT_LIMIT // 4)]
    if info.of_group:
        return _exit_code([_put_verdict(bot, info, posting, rules, texts[0])])
    if info.run.pull_request is None:
        return _post_nothing(bot, info, info.no_pull_request) if info.no_pull_request else 0
    number, stamp = info.run.pull_request, Stamp.of(info.run)
    # Where nothing was to be measured, the check run alone says so, and an older comment is corrected.
    topic = "verdict" if posting.task == "bench" else posting.task
    begin = not posting.quiet
    ended = [_one(bot, "comment", PULLS, lambda: put_comment(bot, number, texts, stamp, topic, begin))]
    if posting.task != "bench":  # only a measurement is about the merge
        return _exit_code(ended)
    if ended[0].outdated:
        return _post_nothing(bot, info, ended[0].outcome.removeprefix("left alone: "))
    decision = posting.decision
    ended.append(_put_verdict(bot, info, posting, rules, texts[0]))
    if decision.again and not (ended[-1].left or ended[-1].error):
        bot.step.output(again=str(stamp.run_id))
    if not ended[-1].left:
        # Unless something newer or worse stands.
        labels = frozenset(filter(None, (decision.label, Label.ACCEPTED if info.accepted else None)))
        ended.append(_one(bot, "label", PULLS, lambda: put_labels(bot, number, labels, stamp)))
    made = render.blocks(results(posting.gpus, info.run))
    if made and info.pull and description.has_block(info.pull.body) and not (ended[0].left or ended[0].error):
        what = "block of results in the description"
        ended.append(_one(bot, what, PULLS, lambda: put_results(bot, number, made, stamp)))
    return _exit_code(ended)


def _put_verdict(bot: Bot, info: RunInfo, posting: Posting, rules: Policy, text: str) -> Posted:
    notes = line_notes(posting, info.pull.patches if info.pull else (), rules.template.kernel_paths)
    decision = posting.decision
    rest = {"judged": posting.judged, "settled": decision.settled, "held": bool(decision.held)}
    check = CheckRun(decision.conclusion, posting.title, text, notes, info.run_url, **rest)
    return _one(bot, "check run", CHECKS, lambda: put_check(bot, check, Stamp.of(info.run), info.told))


def _one(bot: Bot, what: str, permission: str, put: Callable[[], Posted]) -> Posted:
    """One of the things to post; one that fails does not keep the others."""
    try:
        done = put()
    except GitHubError as error:
        warning = why = str(error)
        if isinstance(error, DeniedError):
            warning += f": the token may lack `{permission}`, or the conversation is locked; "
            warning += "see the job summary for the full report"
            why += f"; a token needs {permission} for it"
        bot.step.warn(warning)
        _tell(bot, f"the {what} is missing", why)
        return Posted("", error=error)
    bot.step.log(f"{what}: {done.outcome}")
    return done


def _exit_code(ended: Sequence[Posted]) -> int:
    failed = any(one.error is not None and not isinstance(one.error, DeniedError) for one in ended)
    return KernelgateError.exit_code if failed else 0


def _post_awaited(bot: Bot, info: RunInfo) -> list[Posted]:
    """What was found before holds no longer, such as for another base: nothing passes until the run has ended."""
    bot.step.log("nothing posted: the measurement is under way, or waits to be approved; its end is reported")
    stamp, told, number = Stamp.of(info.run), info.told, info.run.pull_request
    if told is not None and told != stamp.order:
        return [_one(bot, "check run", CHECKS, lambda: end_check(bot, None, stamp, told))]
    if not info.begun or number is None:
        return []
    ended = [_one(bot, "check run", CHECKS, lambda: begin_check(bot, stamp, info.run_url, _awaited(info)))]
    if not _exit_code(ended):
        ended.append(_one(bot, "label", PULLS, lambda: put_labels(bot, number, (), stamp, VERDICTS)))
    return ended


def _awaited(info: RunInfo) -> tuple[str, str]:
    """What the waiting check says: title and summary. Of a fork's run, who has to approve what, and where."""
    attempt = info.run.run_attempt or 1
    if not info.fork and attempt == 1:
        return "Not judged yet", "What was found before holds no longer, or not for this base."
    if not info.fork:
        again = f"By itself, at most {ATTEMPTS - 1} times: what is in doubt then is said."
        return f"Not judged yet: it is measured again, attempt {attempt}", again
    gpu: Line = (
        "Before the GPU runs anything of it, a reviewer of the environment ",
        *(Code(FORK_ENVIRONMENT), " looks at the change and approves ", Link("the run", info.run_url)),
        " (“Review deployments”).",
    )
    if info.conclusion != "action_required":
        return "Not judged yet: a maintainer approves a fork's measurement", render.markdown_line(gpu)
    first: Line = ("Somebody with write access approves its workflows on this page (“Approve workflows to run”). ",)
    return "Not judged yet: waits for a maintainer to approve this fork's run", render.markdown_line((*first, *gpu))


def _post_nothing(bot: Bot, info: RunInfo, why: str) -> int:
    """Says why in the job summary. No check run goes on waiting for this run, and none passes for it."""
    _tell(bot, "nothing posted", why)
    title = render.plain_line(with_consequence(Mark.UNKNOWN, ("Not judged",), UNTRUSTED))
    check = CheckRun("action_required", title, render.markdown_line((f"{why}.",)), details_url=info.run_url)
    stamp = Stamp.of(info.run)
    return _exit_code([_one(bot, "check run", CHECKS, lambda: end_check(bot, check, stamp, info.told or stamp.order))])


def _post_shared(bot: Bot, info: RunInfo) -> int:
    """Several pull requests have the commit: its check run counts for each, so it can pass for none of them."""
    why = info.no_pull_request or ""
    _tell(bot, "nothing posted", why)
    what = cause(SHARED_COMMIT.blockers[0], named_=False)
    title = render.plain_line(with_consequence(Mark.BLOCKED, what, SHARED_COMMIT))
    more = f"{why}. A check run belongs to a commit, and what is slower than one base may be faster than another. "
    more += "Close all but one; then somebody with write access can have it measured: "
    summary = render.markdown_line((more, Code("/kernelgate bench")))
    check = CheckRun(SHARED_COMMIT.conclusion, title, summary, details_url=info.run_url, judged=False)
    return _exit_code([_one(bot, "check run", CHECKS, lambda: put_check(bot, check, Stamp.of(info.run), info.told))])


def _tell(bot: Bot, what: str, why: str) -> None:
    bot.step.log(f"{what}: {why}")
    line: Line = (Mark.SLIGHT, f" {what}: ", bot.step.harmless(why))
    bot.step.summary(render.markdown_line(line))


def line_notes(
    posting: Posting, files: Sequence[tuple[str, str]], kernel_paths: Sequence[str]
) -> tuple[Annotation, ...]:
    """Remarks beside the changed kernel lines. `files`: path and patch of each changed file. Which lines made something
    slower, faster or wrong is not known, so that remark stands at the longest hunk."""
    changed = {path: patch for path, patch in files if path.startswith(tuple(kernel_paths))}
    found = [note for one in posting.gpus for note in _of_compiler(one, changed, posting.title)]
    found += dict.fromkeys(note for one in posting.gpus for note in _of_sanitizer(one, posting, tuple(kernel_paths)))
    for said in remarks.compiler_warnings(posting.gpus)[:MAX_WARNINGS]:
        if said.file in dict(files) and 0 < (line := said.line or 0) < MAX_LINE:
            found.append(Annotation(said.file, line, line, "warning", "compiler warning", escape.visible(said.text)))
    hunks = [(int(length or 1), path, int(start)) for path in changed for start, length in _HUNK.findall(changed[path])]
    length, path, start = max(hunks, default=(0, "", 0))
    if length and (remark := _remark(posting)):
        found.append(Annotation(path, start, start + length - 1, remark[0], posting.title, remark[1]))
    return tuple(found)


def _remark(posting: Posting) -> tuple[Level, str] | None:
    blocking = {blocker.code for blocker in posting.decision.blockers}
    if any(one.is_wrong for one in posting.gpus):
        message = "The kernel's output differs from the oracle's. The comment names the first case."
        return ("failure" if BlockCode.WRONG_OUTPUT in blocking else "notice"), message
    verdicts = [one.verdict for one in posting.gpus if one.verdict]
    outcomes = {case.verdict for one in verdicts for case in one.cases}
    outcomes |= {mean.verdict for one in verdicts for mean in one.means}
    if not outcomes & {Outcome.REGRESSED, Outcome.IMPROVED}:
        return None
    message = "Which lines did it is not known. The comment lists the cases."
    return ("failure" if BlockCode.SLOWER in blocking else "notice"), message


def _of_compiler(one: GpuReport, paths: Collection[str], title: str) -> Iterator[Annotation]:
    message = one.failure.message if one.failure is not None and one.failure.fault is Fault.BUILD else ""
    if found := _COMPILER.search(message):
        line, ending = int(found["line"]), found["path"].lstrip("./")
        named = [path for path in paths if path.endswith(ending)]
        yield from (Annotation(path, line, line, "failure", title, message) for path in named[:1])


def _of_sanitizer(one: GpuReport, posting: Posting, kernel_paths: tuple[str, ...]) -> Iterator[Annotation]:
    """What compute-sanitizer found, where it names a line of a kernel's source: a record may name any file."""
    blocks = (BlockCode.SANITIZER, one.label) in [(found.code, found.gpu) for found in posting.decision.blockers]
    checks = correctness.checks(one.record, "sanitizer")
    every = [found for check in checks for found in correctness.sanitizer_findings(check)]
    for found in every[:MAX_FINDINGS]:
        path, line = found.file or "", found.line or 0
        inside = _SOURCE.fullmatch(path) and ".." not in path.split("/") and path.startswith(kernel_paths)
        if inside and 0 < line < MAX_LINE:
            level: Level = "failure" if blocks and not found.on_base else "warning"
            yield Annotation(path, line, line, level, "compute-sanitizer", render.plain_line(words.finding(found)))
