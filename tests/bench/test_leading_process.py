"""The process that leads never loads torch, which takes seconds: workers do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def torch_after(code: str) -> tuple[bool, str]:
    """Whether torch is loaded after the code in a fresh process, and what that wrote to standard error."""
    words = [sys.executable, "-c", f"{code}\nimport sys; print('torch' in sys.modules)"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip().splitlines()[-1] == "True", done.stderr


def test_the_test_would_see_it() -> None:
    assert torch_after("import kernelgate.bench.timing.worker")[0]


def test_what_leads_a_measurement() -> None:
    modules = "kernelgate.bench.run, kernelgate.bench.timing.paired, kernelgate.bench.check.fuzz, kernelgate.ci.local"
    assert not torch_after(f"import {modules}")[0]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["bench", "--case", "nonsense"], 64, "'nonsense' is not a case"),
        (["bench", "--suite", "nonsense"], 64, "there is no suite 'nonsense'"),
        (["bench", "--alone", "--head-library", "nowhere"], 3, "nowhere holds no compiled kernel"),
        (["resources", "--alone", "--head-library", "nowhere"], 3, "nowhere holds no compiled kernel"),
        (["fuzz", "--library", "nowhere"], 3, "nowhere holds no compiled kernel"),
    ],
)
def test_a_plain_refusal_starts_nothing(words: list[str], code: int, says: str) -> None:
    nothing = "import subprocess; subprocess.Popen = None"  # neither a compiler nor a worker
    run = f"from kernelgate.ci import cli; {nothing}; assert cli.run({words!r}) == {code}"
    loaded, said = torch_after(run)
    assert says in said
    assert not loaded
