"""Two libraries timed and judged as a user would: `kernelgate bench`, then `kernelgate compare`, in processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench.build.library import Library
from kernelgate.ci.judge.stats import GATES_P
from kernelgate.ci.policy.policy import TO_DIRECT
from tests.cheats import libraries
from tests.cheats.libraries import Tally
from tests.cheats.table import Cheat, Ending

CARD = """\
from torch.nn.functional import rms_norm, silu

from kernelgate import {build_class}, Kernel


class Norm(Kernel):
    build = {build}
    cases = [{cases}]
    cpu_cases = [{cases}]
    fuzz = dict(M=range(1, 200), N=range(1, 700))
    independent = dict(x=0, out=0)

    def inputs(self, case, draw):
        return dict(x=draw(case.M, case.N), weight=draw(case.N))

    def call(self, ops, case, out, x, weight):
        {call}(out, x, weight{more})

    def oracle(self, case, x, weight):
        return silu(rms_norm(x, weight.shape, weight, 1e-6))
"""
NO_REFERENCE = """
    def reference(self, case, x, weight):
        raise NotImplementedError("it is not asked for")
"""
EXTENSION = {"build_class": "Extension", "build": 'Extension("csrc")'}
PACKAGE = {"build_class": "Package", "build": 'Package("cheating")'}
SMALL = ("dict(M=96, N=512, dtype='fp32')", "m96_n512_fp32")
"""About 250 µs a call of the native kernel on one thread."""
LARGE = ("dict(M=1024, N=2048, dtype='fp32')", "m1024_n2048_fp32")
"""About 150 µs a call of the CUDA kernel on an H200."""
LONG = ("dict(M=4096, N=2048, dtype='fp32')", "m4096_n2048_fp32")
"""About 550 µs: without a reference, a sample has one call."""
PROCESSES = TO_DIRECT
"""At which "faster" can be said: in fewer no cheat would be called faster, whatever it does."""
BUSY = 1.5
"""Waiting programs for each core, from which on a single comparison shows little."""
PATIENCE_S = 500.0
PAYLOADS = Path(__file__).parent / "payloads"


def repository(
    folder: Path,
    package: bool = False,
    case: str = SMALL[0],
    call: str = "ops.norm",
    more: str = "",
    reference: bool = True,
) -> Path:
    """A checkout with the card, in which the commands run. `more`: what its call says after the weight. `reference`:
    whether it has one that can be timed, whose calls are short, so that a sample has several."""
    (folder / ".ci" / "kernels").mkdir(parents=True)
    text = CARD.format(**(PACKAGE if package else EXTENSION), cases=case, call=call, more=more)
    text += "" if reference else NO_REFERENCE
    (folder / ".ci" / "kernels" / f"{libraries.CARD}.py").write_text(text, encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Judgement:
    """What came of one case."""

    bench_code: int
    compare_code: int | None
    """None where there was no record to judge."""
    case: dict[str, Any] | None
    """As `compare --json` has it; None where the record, or the run, is refused."""
    refused: str
    """Why; empty where it is not."""
    text: str
    """What both commands said."""

    @property
    def codes(self) -> set[str]:
        """The disqualifying findings."""
        found = self.case["findings"] if self.case else ()
        return {finding["code"] for finding in found if finding["disqualifies"]}

    @property
    def outcome(self) -> str:
        if self.case is None:
            return "wrong output" if "wrong result" in self.refused else "refused"
        if "wrong_output" in self.codes:
            return "wrong output"
        if self.codes:
            return "contradicted" if any(code.startswith("witness_") for code in self.codes) else "undecided"
        none = "undecided" if self.case["verdict"] == "inconclusive" else "same"
        return {"faster": "faster", "slower": "slower", "none": none}[self.case["direction"]]

    @property
    def shows_nothing(self) -> bool:
        """On a busy machine a comparison may show no difference at all, so that there is nothing to contradict."""
        return self.case is not None and not self.codes and float(self.case["p"]) >= GATES_P

    @property
    def change_pct(self) -> float | None:
        change = self.case["change_pct"] if self.case else None
        return None if change is None else float(change)

    def __str__(self) -> str:
        change = "" if self.change_pct is None else f" ({self.change_pct:+.1f}%)"
        return f"{self.outcome}{change}, exit codes {self.bench_code} and {self.compare_code}\n{self.text}"


def run(repo: Path, words: Sequence[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kernelgate.ci.commands.cli", *words]
    env = {**os.environ, **variables}
    return subprocess.run(command, cwd=repo, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def judge(repo: Path, base: Library, head: Library, case: str, rounds: int = 40, cuda: bool = False) -> Judgement:
    """Times and judges one case of two libraries."""
    (done,) = judge_all(repo, base.folder, head.folder, rounds, ("--case", case), cuda)
    return done


def judge_all(
    repo: Path, base: Path, head: Path, rounds: int, options: Sequence[str] = (), cuda: bool = False
) -> tuple[Judgement, ...]:
    """Times and judges the libraries in two folders: a judgement for each case; one where there is none to judge.

    On a CPU the lock of the machine is the test's own, so that none waits for a stranger's run.
    """
    output = repo / "run.json"
    sides = ["--base-library", str(base), "--head-library", str(head)]
    variables = {} if cuda else {"CUDA_VISIBLE_DEVICES": "", "TMPDIR": str(repo)}
    counts = ["--processes", str(PROCESSES), "--rounds", str(rounds)]
    bench = run(repo, ["bench", *sides, *counts, "-o", str(output), *options], variables)
    text = f"$ kernelgate bench: {bench.returncode}\n{bench.stdout}{bench.stderr}"
    if not output.exists():
        return (Judgement(bench.returncode, None, None, f"kernelgate bench: {bench.returncode}", text),)
    time.sleep(0.1)  # whoever wants to rewrite the record has had the time
    compare = run(repo, ["compare", str(output), "--json"], variables)
    text += f"$ kernelgate compare: {compare.returncode}\n{compare.stdout}{compare.stderr}"
    verdict = json.loads(compare.stdout) if compare.stdout else {"cases": [], "refused": "nothing was judged"}
    refused = verdict["refused"] or ("" if verdict["cases"] else verdict["reason"])
    cases = verdict["cases"] or [None]
    return tuple(Judgement(bench.returncode, compare.returncode, case, refused, text) for case in cases)


def name(cheat: Cheat) -> str:
    return f"{cheat.where.split(',')[0]}-{cheat.name}"


def words(cheat: Cheat, folder: Path, tally: Tally) -> str:
    """The configuration of a native cheat."""
    chosen = (cheat.words or f"cheat={cheat.name}").format(payloads=PAYLOADS, folder=folder, python=sys.executable)
    return f"{chosen} tally={tally.file}"


def acted(cheat: Cheat, tally: Tally) -> float:
    """The share of calls that were not honest; of a cheat that must act, it is asserted to have."""
    assert tally.calls > 0 or cheat.where.startswith("package")
    must_act = cheat.expected is not Ending.NOTHING_TO_GAIN if cheat.must_act is None else cheat.must_act
    assert tally.cheated > 0 or not must_act, "the cheat did nothing, so that this test shows nothing"
    return tally.cheated / max(1, tally.calls)


def check(cheat: Cheat, judged: Judgement, share: float) -> None:
    """Asserts what must come of a cheat. `share`: of its calls, how many were not honest."""
    expected, outcome = cheat.expected, judged.outcome
    if expected is Ending.TRUE_GAIN:
        assert outcome in ("faster", "slower", "same", "undecided"), judged
        return
    assert outcome != "faster", judged
    assert judged.compare_code != 0, judged
    if judged.case:
        assert judged.case["verdict"] != "improved", judged
    if expected is Ending.WRONG_OUTPUT:
        assert outcome in ("wrong output", "refused"), judged
    if expected is Ending.CONTRADICTED:
        seen = outcome in ("contradicted", "wrong output", "refused") or "carry_over" in judged.codes
        assert seen or judged.shows_nothing, judged
    if expected is Ending.NOTHING_TO_GAIN and share > 0.02:
        assert outcome != "same", judged


def check_faster(once: Callable[[int], Judgement]) -> None:
    """An honest gain must be faster, or a test that finds no cheat faster would show nothing. What other work on the
    machine hides is timed again, and can be shown by nobody where that work goes on."""
    hidden = ("undecided", "contradicted")
    done = once(0)
    for number in range(1, 3):
        done = once(number) if done.outcome in hidden else done
    if done.outcome in hidden and os.getloadavg()[0] > BUSY * (os.cpu_count() or 1):
        pytest.skip(f"the machine is busy, so that nothing is faster on it for sure: {done.text[-300:]}")
    assert (done.outcome, done.compare_code) == ("faster", 0), done
