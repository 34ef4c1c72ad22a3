"""The verbs. Each one is thin: it reads its words, calls one function, and turns the result into an exit code.

Heavy imports (torch, scipy, jinja2) stay inside the verbs, so that `kernelgate --help` answers at once.
"""

from __future__ import annotations

import sys

import click

from bench.errors import KernelgateError, UsageError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="kernelgate")
def cli() -> None:
    """Continuous integration for CUDA kernels: build, fuzz, duel, judge, and say so in one comment."""


def main() -> None:
    """The `kernelgate` command. Errors that a user can mend are printed in a sentence, never as a traceback."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs one verb and returns its exit code: a verb returns its own, errors carry theirs."""
    try:
        code = cli.main(arguments, prog_name="kernelgate", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return UsageError.exit_code
    except click.Abort:
        click.echo("kernelgate: interrupted", err=True)
        return 130
    except KernelgateError as error:
        click.echo(f"kernelgate: {error}", err=True)
        return error.exit_code
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    main()
