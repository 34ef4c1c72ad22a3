"""The process that leads never loads torch, which takes seconds: workers do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


LITTLE = """
import subprocess
class Little(subprocess.Popen):
    def __init__(self, words, *rest, **more):  # git and the reader of cards: neither a compiler nor a worker
        assert words[0] == "git" or "kernelgate.bench.kernel.card_reader:read" in words, words
        super().__init__(words, *rest, **more)
subprocess.Popen = Little
"""


def torch_after(code: str) -> tuple[bool, str]:
    """Whether torch is loaded after the code in a fresh process, and what that wrote to standard error."""
    words = [sys.executable, "-c", f"{code}\nimport sys; print('torch' in sys.modules)"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip().splitlines()[-1] == "True", done.stderr


@pytest.mark.slow
def test_the_test_would_see_it() -> None:
    assert torch_after("import kernelgate.bench.timing.worker")[0]


def test_starting_a_worker_would_be_seen() -> None:
    worker = "from kernelgate.bench.system.worker import WorkerProcess; WorkerProcess('any:function')"
    with pytest.raises(subprocess.CalledProcessError) as caught:
        torch_after(f"{LITTLE}\n{worker}")
    assert "AssertionError" in caught.value.stderr


REFUSED = (
    (["bench", "--case", "nonsense"], 64, "'nonsense' is not a case"),
    (["bench", "--suite", "nonsense"], 64, "there is no suite 'nonsense'"),
    (["bench", "--alone", "--head-library", "nowhere"], 3, "nowhere holds no compiled kernel"),
    (["resources", "--alone", "--head-library", "nowhere"], 3, "nowhere holds no compiled kernel"),
    (["fuzz", "--library", "nowhere"], 3, "nowhere holds no compiled kernel"),
)


@pytest.mark.slow
def test_what_leads_a_measurement_and_a_plain_refusal_start_nothing() -> None:
    modules = "bench.measure.run bench.timing.paired bench.check.fuzz ci.pipeline.local bench.measure.list_cards"
    code = f"import {', '.join(f'kernelgate.{one}' for one in (*modules.split(), 'bench.kernel.commit'))}\n{LITTLE}"
    code += (
        f"from kernelgate.ci.commands import cli\nfor words, code, _ in {REFUSED}:\n    assert cli.run(words) == code"
    )
    loaded, said = torch_after(code)
    assert not loaded
    for (_, _, says), line in zip(REFUSED, said.splitlines(), strict=True):
        assert says in line
