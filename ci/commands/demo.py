"""`kernelgate demo`: five pull requests on the CPU kernel, as their authors would see them."""

from __future__ import annotations

import subprocess
import sys

import click

from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.system.interpreter import ROOT

MODULE = "tests.demo"


@click.command()
def demo() -> int:
    """Measure five pull requests to the included kernel on this CPU: faster, slower, equal, wrong, and a cheat.

    It takes about five minutes, needs a clone of kernelgate and no account: a GitHub in this process gets the comments.
    They end in one page, as a phone shows them.

    Exit codes: 0, 1 it failed, 64 usage.
    """
    if not ROOT.joinpath(*MODULE.split(".")).is_dir():
        raise UsageError("the demo is in kernelgate's own repository: clone it, run `make env` there, then `make demo`")
    return subprocess.run([sys.executable, "-m", MODULE], cwd=ROOT, check=False).returncode
