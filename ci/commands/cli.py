"""`kernelgate`: the list of its commands, what they need of their process, and how what ended one becomes an exit code.

A command's file is loaded when the command is called, so that `kernelgate --help` answers at once.
"""

from __future__ import annotations

import contextlib
import gc
import io
import mmap
import os
import re
import resource
import signal
import sys
from importlib import import_module
from keyword import iskeyword

import click

from kernelgate.bench.core.errors import KernelgateError, OutputError, PreemptedError, UsageError
from kernelgate.bench.system.progress import inert
from kernelgate.ci.commands import exit_codes

SECTIONS = {
    "Start here": {
        "try": ("local", "Compare any two commits of any clone, with nothing committed."),
        "pr": ("local", "Do locally what a pull request gets: build, fuzz, time, judge, comment."),
        "setup": ("setup", "Set up a repository on GitHub, and undo it."),
        "prove": ("setup", "Open pull requests whose verdict is known on GitHub, and look what came of them."),
        "init": ("init", "Write cards, workflows and policy for the kernels that a repository has."),
        "demo": ("setup", "Show five pull requests to the included kernel, from the push to the comment."),
        "doctor": ("local", "Say whether this machine is fit to measure, and how to make it so."),
        "cards": ("measure", "List the cards in .ci/kernels, and check them."),
    },
    "Build and measure": {
        "build": ("measure", "Compile the kernels of one commit. Needs no GPU."),
        "fuzz": ("check", "Compare each kernel with its oracle on random inputs."),
        "bench": ("measure", "Time base and head against each other."),
        "canary": ("pair", "Time comparisons whose answer is known, which tells of the machine."),
        "merge": ("fleet", "Make one run record of the shards of a measurement."),
        "submit": ("fleet", "Measure on a Slurm cluster, in shards."),
        "pair": ("pair", "Compare two commands, such as two builds of one benchmark."),
        "accuracy": ("check", "Compare the errors of base and head against float64."),
        "sanitize": ("check", "Look for invalid accesses, races and misused barriers. Needs a GPU."),
        "profile": ("measure", "Profile base and head with Nsight Compute. Needs a GPU."),
        "resources": ("measure", "Show registers, spills and occupancy of base and head. Needs no GPU."),
    },
    "Judge and explain": {
        "compare": ("judge", "Judge run records: improved, regressed, equivalent, and how sure that is."),
        "report": ("judge", "Render the comment and the page of a run record."),
        "analyze": ("judge", "Name the bottleneck of each kernel in an Nsight Compute report."),
        "decide": ("judge", "Say what to do next, from a speed-up and a time."),
        "policy": ("judge", "Print every number that decides, with its source."),
        "template": ("steps", "Check a pull request's description."),
    },
    "Over time": {
        "history": ("history", "Keep every measurement, and show how speed has changed."),
        "bisect": ("search", "Find the commit that made a case slower or wrong."),
        "scan": ("search", "Find the past commits that made a kernel slower or faster."),
    },
    "Optimise": {
        "session": ("session", "Optimise a kernel: gates in order, one change a try."),
        "recommend": ("lab", "Say what to try next on a profiled kernel."),
        "outcomes": ("lab", "Say what came of all tries of all sessions."),
        "patterns": ("lab", "List the patterns that apply now."),
        "prompt": ("lab", "Print the text that an agent begins a session with."),
        "mcp": ("lab", "Serve the commands to a coding agent."),
    },
    "Other": {
        "cache": ("local", "Manage the cache of compiled libraries."),
        "schema": ("schema", "Print the JSON Schema of what a command prints with --json."),
        "step": ("steps", "The steps of GitHub workflows."),
    },
}
LAST_S = 253_402_300_799
"""The largest SOURCE_DATE_EPOCH that compilers take: the end of the year 9999."""
MEMORY = 256 << 20
"""Bytes of address space that judging a record takes, of libraries mostly."""


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*(name for section in SECTIONS.values() for name in section), *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for section in SECTIONS.values():
            if cmd_name in section:
                module = import_module(f"{__package__}.{section[cmd_name][0]}")
                if not gc.isenabled():  # by main
                    gc.freeze()
                    gc.enable()
                command: click.Command = getattr(module, f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name)
                return command
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, (_, text) in section.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="kernelgate")
def cli() -> None:
    """Continuous integration for GPU kernels: build, fuzz, time, judge, and report in one comment."""


def main() -> None:
    """The `kernelgate` command. Whatever ends it is said in a sentence, never as a traceback."""
    gc.disable()  # what a command loads stays to the end: to look through it takes a quarter of the time to load it
    open_descriptors()
    take_any_character()
    exit_codes.stop_on_signals()
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        # What could not be written is not tried again when the interpreter ends, which would end with 120.
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def open_descriptors() -> None:
    """Stands something in for standard streams that are closed, so that no file of ours becomes one of them."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(handle, True)
    os.close(handle)
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+"))  # noqa: PTH123, SIM115


def take_any_character() -> None:
    """Where the terminal or the locale is ASCII, text goes out as UTF-8; what cannot be encoded, as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            ascii_alone = stream.encoding.lower() in ("ascii", "ansi_x3.4-1968", "us-ascii", "646")
            stream.reconfigure(encoding="utf-8" if ascii_alone else None, errors="backslashreplace")


def require_memory() -> None:
    """Raises KernelgateError where there is too little: OpenBLAS would end the process with 1, as a regression does."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each of them maps 80 MB
    try:
        mmap.mmap(-1, MEMORY).close()
    except OSError:
        raise KernelgateError(
            f"this process may not use {MEMORY >> 20} MiB of memory: allow it 1 GiB (ulimit -v)"
        ) from None


def run(arguments: list[str]) -> int:
    """Runs one command and returns its exit code: a command returns its own, errors carry theirs.

    An option may also be a variable, such as KERNELGATE_BENCH_CASE for `bench --case`: that is how workflows hand on
    what people typed, which then never meets a shell.
    """
    try:
        require_memory()
        epoch = os.environ.get("SOURCE_DATE_EPOCH", "0")
        if not re.fullmatch("[0-9]{1,12}", epoch) or int(epoch) > LAST_S:  # numpy and compilers would stop
            raise UsageError(f"SOURCE_DATE_EPOCH={epoch[:40]!r} is no number of seconds since 1970: unset it")
        code = cli.main(arguments, prog_name="kernelgate", standalone_mode=False, auto_envvar_prefix="KERNELGATE")
        sys.stdout.flush()
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        return _ended(error, arguments)
    return code if isinstance(code, int) else 0


def _ended(error: BaseException, arguments: list[str]) -> int:
    """Says what ended a command, to people and to the workflow that may have asked for a note of it."""
    code, sentence = exit_codes.of_error(error)
    _say(error if isinstance(error, click.ClickException) else inert(sentence))
    taken_away = isinstance(error, PreemptedError) or code == 128 + signal.SIGTERM
    try:
        # A job that another one goes on with does not fail for it; but what admits a measurement fails closed.
        if taken_away and "KERNELGATE_PREEMPTED" in os.environ and arguments[0] != "step":
            from kernelgate.ci.github.actions import Step

            Step().output(preempted="true")
            return 0
        if isinstance(error, KernelgateError) and "KERNELGATE_FAILURE" in os.environ:
            from kernelgate.ci.github import untrusted_artifact

            untrusted_artifact.note(error, next(word for word in arguments if word != "step"))
    except OutputError as unwritten:
        _say(f"kernelgate: no note of this failure: {unwritten}")
    return code


def _say(what: click.ClickException | str) -> None:
    with contextlib.suppress(OSError, ValueError):  # nobody may be left to read it
        if isinstance(what, click.ClickException):
            what.show()
        elif what:
            click.echo(what, err=True)


if __name__ == "__main__":
    main()
