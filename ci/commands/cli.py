"""`kernelgate`: the list of its verbs, and how an error or a verb's answer becomes an exit code.

Each verb is thin: it reads its words, calls one function, and returns its exit code. Heavy imports (torch, scipy,
jinja2) stay inside the verbs, so that `kernelgate --help` answers at once.
"""

from __future__ import annotations

import contextlib
import os
import sys

import click

from kernelgate.bench.core.errors import KernelgateError, OutputError
from kernelgate.ci.commands import (
    exit_codes,
    lab,
    session,
    session_page,
    verbs_bisect,
    verbs_check,
    verbs_github,
    verbs_history,
    verbs_judge,
    verbs_local,
    verbs_measure,
)
from kernelgate.ci.commands import process_setup as surroundings


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="kernelgate")
def cli() -> None:
    """Continuous integration for GPU kernels: build, fuzz, time, judge, and report in one comment."""


for _verb in (
    verbs_measure.cards,
    verbs_measure.build,
    verbs_check.fuzz,
    verbs_measure.bench,
    verbs_check.sanitize,
    verbs_measure.profile,
    verbs_measure.resources,
    verbs_local.accuracy,
    verbs_local.cache,
    verbs_local.doctor,
    verbs_local.pr,
    verbs_bisect.bisect,
    verbs_judge.analyze,
    verbs_judge.decide,
    lab.recommend,
    lab.outcomes,
    verbs_judge.compare,
    verbs_judge.report,
    lab.patterns,
    lab.mcp,
    lab.prompt,
    verbs_history.history,
    session.session,
    verbs_github.fetch_,
    verbs_github.template,
    verbs_github.plan,
    verbs_github.command,
    verbs_github.accept,
    verbs_github.baseline,
    verbs_github.admit,
    verbs_github.reuse,
    verbs_github.index,
    verbs_github.culprits,
    verbs_github.ends,
    verbs_github.bisected,
):
    cli.add_command(_verb)
session.session.add_command(session_page.page)


def main() -> None:
    """The `kernelgate` command. Whatever ends it is said in a sentence, never as a traceback."""
    surroundings.open_descriptors()
    surroundings.take_any_character()
    exit_codes.stop_on_signals()
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs one verb and returns its exit code: a verb returns its own, errors carry theirs.

    An option may also be a variable, such as KERNELGATE_BENCH_CASE for `bench --case`: that is how workflows hand on
    what people typed, which then never meets a shell.
    """
    try:
        surroundings.require_memory()
        code = cli.main(arguments, prog_name="kernelgate", standalone_mode=False, auto_envvar_prefix="KERNELGATE")
        if sys.stdout is not None:
            sys.stdout.flush()
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        return _ended(error, arguments)
    return code if isinstance(code, int) else 0


def _ended(error: BaseException, arguments: list[str]) -> int:
    """Says what ended a verb, to people and to the workflow that may have asked for a note of it."""
    from kernelgate.bench.system.progress import inert  # here, because rich is not loaded for nothing

    code, said = exit_codes.of_error(error)
    _say(error if isinstance(error, click.ClickException) else inert(said))
    if isinstance(error, KernelgateError) and "KERNELGATE_FAILURE" in os.environ:
        from kernelgate.ci.github import untrusted_artifact

        try:
            untrusted_artifact.note(error, arguments[0])
        except OutputError as unwritten:
            _say(f"kernelgate: no note of this failure: {unwritten}")
    if code in (exit_codes.CLOSED_PIPE, exit_codes.INPUT_OUTPUT):
        _give_up_output()
    return code


def _say(what: click.ClickException | str) -> None:
    with contextlib.suppress(OSError, ValueError):  # nobody may be left to read it
        if isinstance(what, click.ClickException):
            what.show()
        elif what:
            click.echo(what, err=True)


def _give_up_output() -> None:
    """What could not be written is not tried again when the interpreter ends, which would speak of it, too."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
