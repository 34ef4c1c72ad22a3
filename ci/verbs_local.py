"""The verbs for the machine in front of you: whether it is fit, and all that a pull request gets, at once."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--gpu", is_flag=True, help="A machine without a GPU is not fit, and nothing is compiled; for GPU runners."
)
@click.option("--json", "as_json", is_flag=True, help="Print all as JSON.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write all as JSON to this file, too.")
def doctor(gpu: bool, as_json: bool, output: Path | None) -> int:
    """Is this machine fit to measure, and do the checkout's kernels work on it? What does not says how to fix it.

    Each kernel is compiled, unless the cache has it, and called on its smallest case.

    Exit codes: 0 fit, 1 not fit.
    """
    from kernelgate.bench import files
    from kernelgate.bench.doctor import check
    from kernelgate.bench.doctor.examine import examine

    if output:
        files.try_file(output)
    checks = examine(Path.cwd(), gpu_wanted=gpu)
    if output:
        files.write(output, check.to_json(checks) + "\n")
    click.echo(check.to_json(checks) if as_json else check.report(checks))
    return 0 if check.fit(checks) else 1


@click.command()
@click.option("--base", help="Compare with this commit. Default: where this branch left the default branch.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out"), show_default=True, help="For the results.")
@click.option("--preset", default="default", show_default=True, help="The policy's preset, such as strict.")
def pr(base: str | None, out: Path, preset: str) -> int:
    """Do locally what a pull request gets: build, fuzz, time base against head, judge, and show the comment.

    The head is the working tree. Runs on the GPU where there is one, else on the CPU. Leaves run.json, comment.md and
    page.html in the output folder.

    Exit codes: 0 nothing blocks, 1 the change blocks: it does not compile, is wrong, spills registers, or is slower
    than the policy allows; 3 it could not be judged (why), 64 usage.
    """
    from rich.console import Console

    from kernelgate.ci import local
    from kernelgate.ci.document import render
    from kernelgate.ci.judge import policy

    result = local.run(Path.cwd(), base, out, policy.load(None, preset))
    console = Console()
    render.show(result.comment, console)
    if console.is_terminal:
        click.echo(result.first_line)  # the comment is longer than a screen
    click.echo(f"Written: {', '.join(str(out / name) for name in local.written(out))}", err=True)
    return int(result.decision.blocks)
