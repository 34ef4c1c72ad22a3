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


def test_what_leads_a_measurement() -> None:
    modules = "kernelgate.bench.measure.run, kernelgate.bench.timing.paired, "
    modules += "kernelgate.bench.check.fuzz, kernelgate.ci.pipeline.local"
    modules += ", kernelgate.bench.measure.list_cards, kernelgate.bench.kernel.commit"
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
    run = f"from kernelgate.ci.commands import cli; assert cli.run({words!r}) == {code}"
    loaded, said = torch_after(f"{LITTLE}\n{run}")
    assert says in said
    assert not loaded
