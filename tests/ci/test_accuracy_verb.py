"""`kernelgate accuracy` and the end of `kernelgate bench`, on libraries with a planted loss of accuracy."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.check import accuracy
from kernelgate.bench.system import environment, lock
from kernelgate.ci.commands import cli
from tests import registered
from tests.bench.in_process import put_workers_in_threads
from tests.bench.machine import CPU
from tests.called import EndsWith

BODY = """
cases = [dict(M=64, N=64, dtype="bf16")]
cpu_cases = cases
distributions = ("normal",)
def inputs(self, case, draw):
    return dict(x=draw(case.M, case.N))
def call(self, ops, case, out, x):
    ops.third(x, out)
def oracle(self, case, x):
    return x / 3
"""
KERNEL = """
@operator("third(Tensor x, Tensor(a!) out) -> ()")
def third(x, out):
    exact = x.float() / 3
    out.copy_(CODE)
"""
ROUNDED = KERNEL.replace("CODE", "exact")
CUT = KERNEL.replace("CODE", "(exact.view(torch.int32) & -65536).view(torch.float32)")
SAME = KERNEL.replace("CODE", "0 + exact")
RAISES = KERNEL.replace("CODE", "1 / 0")
BOTH = ("--base-library", "base", "--head-library", "head")


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(environment, "describe", lambda *_: CPU)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(accuracy, "BUDGET_S", 600.0)
    put_workers_in_threads(monkeypatch)
    registered.write_card(tmp_path / ".ci" / "kernels", "third", BODY)


def library(side: str, code: str, name: str) -> None:
    registered.build(Path(side) / "third", f"verb_{name}_{side}", code, "third")


@pytest.mark.parametrize(
    ("head", "code", "says"),
    [
        (CUT, 1, "⚠ less accurate: mean error 0.14 → 0.21 ulp (1.5×), certain"),
        (SAME, 0, "✅ accuracy: every output is bit-identical to the base's"),
        (RAISES, 2, "❔ accuracy: not measured: 1 of 1 left out, such as m64_n64_bf16: the head raised an error"),
    ],
    ids=["cut", "same", "raises"],
)
def test_the_verb_says_what_came_of_it(head: str, code: int, says: str, ends_with: EndsWith) -> None:
    library("base", ROUNDED, f"ended_{code}")
    library("head", head, f"ended_{code}")
    assert says in ends_with(code, "accuracy", "--seed", "1", *BOTH).out
    if code == 2:  # what --json prints, once
        made = record.from_json(ends_with(code, "accuracy", "--seed", "1", "--json", *BOTH).out)
        assert [check.kind for check in made.checks] == ["accuracy"]
        said = ends_with(64, "accuracy", "--base-library", "base", "--head-library", "base").err
        assert "it takes a card with cases for this machine and two libraries" in said


@pytest.mark.slow
def test_bench_ends_with_it_and_its_comment_says_it() -> None:
    library("base", ROUNDED, "bench")
    library("head", CUT, "bench")
    assert cli.run(["bench", "--seed=1", "--processes=2", "--rounds=20", "-o", "run.json", *BOTH]) == 0
    made = record.read(Path("run.json"))
    assert [check.kind for check in made.checks] == ["accuracy"]
    assert made.run.ended == "complete"
    cli.run(["report", "run.json", "-o", "comment.md"])
    assert "⚠️ less accurate: mean error 0.14 → 0.21 ulp (1.5×), certain" in Path("comment.md").read_text()
    assert cli.run(["bench", "--seed=1", "--processes=2", "--rounds=20", "-o", "run.json", "--resume", *BOTH]) == 0
    assert [check.kind for check in record.read(Path("run.json")).checks] == ["accuracy"], "once"
    assert cli.run(["bench", "--alone", "--head-library", "head", "--processes=1", "--rounds=20", "-o", "a.json"]) == 0
    assert record.read(Path("a.json")).checks == ()
