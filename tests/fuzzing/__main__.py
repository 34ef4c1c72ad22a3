"""`python -m tests.fuzzing SECONDS [--seed N] [READER …]`: fuzzes each reader for its share of the time.

Ends with 1 where an input was a fault: it lies in `build/fuzzing/findings/<reader>`. What was found to reach further
stays in `build/fuzzing/corpus/<reader>` and is where the next call begins.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

from tests.fuzzing import readers

OUT = Path("build/fuzzing")
MEMORY_MB = 2048


def fuzz(reader: str, seconds: int, seed: int) -> bool:
    """Whether nothing was found. Says how much was tried."""
    grown, findings, log = OUT / "corpus" / reader, OUT / "findings" / reader, OUT / f"{reader}.log"
    for folder in (grown, findings):
        folder.mkdir(parents=True, exist_ok=True)
    options = {
        "max_total_time": seconds,
        "seed": seed,
        "max_len": readers.MAX_BYTES,
        "timeout": 60 * readers.SLOW_S,  # of a clock on the wall: what never ends; readers.check sees what is slow
        "rss_limit_mb": MEMORY_MB,
        "artifact_prefix": f"{findings}/",
        "print_final_stats": 1,
    }
    words = [f"-{name}={value}" for name, value in options.items()]
    command = [sys.executable, "-m", "tests.fuzzing.target", reader, *words, str(grown), str(readers.CORPUS / reader)]
    began = time.monotonic()
    with log.open("wb") as file:
        ended = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False).returncode
    said = log.read_text(encoding="utf-8", errors="replace")
    tried = re.search(r"number_of_executed_units:\s*(\d+)", said)
    faults = sorted(path.name for path in findings.iterdir())
    print(
        f"{reader}: seed {seed}, {tried[1] if tried else '?'} inputs in {time.monotonic() - began:.0f} s, "
        f"{len(list(grown.iterdir()))} kept; " + (f"FAULT ({log}): {', '.join(faults)}" if ended else "no fault"),
        flush=True,
    )
    return ended == 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing")
    parser.add_argument("seconds", type=int)
    parser.add_argument("readers", nargs="*", metavar="reader", help=f"of {', '.join(readers.READERS)}; else all")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_intermixed_args()
    chosen = asked.readers or list(readers.READERS)
    share = max(1, asked.seconds // len(chosen))
    fine = [fuzz(reader, share, asked.seed) for reader in chosen]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
