"""Stands in for the verbs that need a GPU, on the tests' GPU runner: a card whose times are made up, and known.

A kernel that differs from the base takes SLOWER times as long. GPU_IS in the environment says that the card is `lost`,
or that what it computes is `wrong`. Everything else is as it would be: the libraries are read and checked, and the
record is written by the same models.
"""

from __future__ import annotations

import os
import random
import sys
from itertools import pairwise
from pathlib import Path

from bench import library, record

SLOWER = 1.05
ROUNDS, LAUNCHES = 100, 5
DEVICE = record.Device(
    name="NVIDIA L4",
    compute_capability="8.9",
    uuid="GPU-0",
    driver="580.95.05",
    memory_bytes=23_574_085_632,
    sm_count=58,
)
CASE = "s512_b32_h8_d64_fp16"
TOLERANCE = record.Tolerance(atol=2e-3, rtol=1e-3)
RIGHT = record.Fuzz(
    status="passed",
    seed=1,
    tolerance=TOLERANCE,
    results=(record.FuzzResult(id="s512_b16_h4", seed=1, passed=True, max_abs_error=4e-4, error_ratio=0.2),),
)
WRONG = record.Fuzz(
    status="failed",
    seed=1,
    tolerance=TOLERANCE,
    results=(record.FuzzResult(id="s512_b16_h4", seed=1, passed=False, max_abs_error=0.41, error_ratio=205.0),),
)


def main(words: list[str]) -> int:
    """The verb in words[0], with the options after it."""
    options = {word: after for word, after in pairwise([*words, ""]) if word.startswith("--")}
    if words[0] in ("doctor", "profile"):
        print(f"kernelgate {words[0]}: done on a card that is made up")
        return int(os.environ.get("GPU_IS") == "lost")
    head = library.read(Path(options.get("--library") or options["--head-library"]))
    base = library.read(Path(options["--base-library"])) if "--base-library" in options else None
    written = run_record(base, head, os.environ)
    wrong = os.environ.get("GPU_IS") == "wrong"
    if words[0] == "fuzz":
        written = written.model_copy(update={"cases": (), "fuzz": WRONG if wrong else RIGHT})
    record.write(written, Path(options["--output"]))
    return int(wrong)


def run_record(base: library.Library | None, head: library.Library, told: os._Environ[str]) -> record.RunRecord:
    """What the card says of the two libraries."""
    slower = SLOWER if base and base.manifest.key != head.manifest.key else 1.0
    draw = random.Random(7)
    launches = tuple(_launch(draw, base is not None, slower) for _ in range(LAUNCHES))
    return record.RunRecord(
        subject=record.Subject(
            repository=told["GITHUB_REPOSITORY"],
            base_sha=base.manifest.sha if base else None,
            head_sha=head.manifest.sha,
            run_id=int(told["GITHUB_RUN_ID"]),
            run_attempt=int(told["GITHUB_RUN_ATTEMPT"]),
        ),
        environment=record.Environment(device=DEVICE, torch="2.13.0", cuda="13.0"),
        fuzz=RIGHT,
        cases=(
            record.Case(
                id=CASE,
                params={"S": 512.0, "B": 32.0, "H": 8.0, "D": 64.0, "dtype": "fp16", "causal": 0.0},
                work=record.Work(flops=1.7e10, bytes=3.4e7),
                launches=launches,
            ),
        ),
    )


def _launch(draw: random.Random, with_base: bool, slower: float) -> record.Launch:
    centres = {"base": 321.0, "head": 321.0 * slower, "oracle": 330.0}
    if not with_base:
        del centres["base"]
    samples = {
        side: tuple(round(centre * (1 + draw.gauss(0, 0.002)), 3) for _ in range(ROUNDS))
        for side, centre in centres.items()
    }
    outputs = {
        side: record.OutputCheck(passed=True, max_abs_error=5e-4) for side in ("base", "head") if side in samples
    }
    telemetry = record.Telemetry(sm_mhz=1710.0, memory_mhz=6251.0, temperature_c=60.0, power_w=70.0)
    return record.Launch(samples_us=samples, inner_repeats=4, outputs=outputs, telemetry=telemetry)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
