"""A repository whose head is slower in each of four cases on the CPU, and its measurement by real processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from kernelgate.bench.record import RunRecord
from kernelgate.ci.judge.case import CERTAIN, Outcome
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy
from tests import miniature

KERNELGATE = Path(sys.executable).with_name("kernelgate")
SLOWER = miniature.SCALE.replace(
    "  for (int64_t i = 0;", "  for (volatile int again = 0; again < 4; again = again + 1)\n    for (int64_t i = 0;"
)
SIZES = (512, 1024, 2048, 4096)
CARD = miniature.SCALE_CARD.replace(
    'cases = [dict(N=64, dtype="fp32")]', f'cpu_cases = cases = [dict(N=n, dtype="fp32") for n in {SIZES}]'
)
FAST = ("--rounds", "20", "--processes", "3")


class Checkout:
    """With the commits `base` and `head`, and what commands of this checkout run with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "repository"
        (folder / "tmp").mkdir(parents=True)
        miniature.repository(self.folder, {**miniature.SCALE_FILES, ".ci/kernels/scale.py": CARD})
        self.base = miniature.git(self.folder, "rev-parse", "HEAD")
        self.head = miniature.commit(self.folder, {"csrc/scale.cpp": SLOWER})
        self.environment: Mapping[str, str] = {
            **miniature.ENVIRONMENT,
            "TMPDIR": str(folder / "tmp"),
            "KERNELGATE_CACHE": str(folder / "cache"),
            "CUDA_VISIBLE_DEVICES": "",
        }

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [KERNELGATE, *words],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str, code: int = 0) -> tuple[str, str]:
        with self.start(*words) as done:
            said, told = done.communicate(timeout=280)
        assert done.returncode == code, told
        return said, told

    def bench(self, output: Path, *words: str) -> list[str]:
        """The words of a measurement with a fixed seed."""
        return ["bench", "--base", self.base, "--head", self.head, "--seed", "3", *FAST, "-o", str(output), *words]


def told(made: RunRecord) -> tuple[Outcome, dict[str, Outcome]]:
    """The verdict, and that of each case of which it is certain: on a busy CPU one or the other may stay open."""
    verdict = judge(made, Policy())
    return verdict.verdict, {case.id: case.verdict for case in verdict.cases if case.verdict in CERTAIN}
