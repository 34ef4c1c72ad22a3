"""Messages that a worker never sent, in the protocol of bench/timing/protocol.py: head takes half of base's time.

They come before the worker's own answers. Whoever changes the protocol changes them: one line for each answer that a
process of one case gives.
"""

from __future__ import annotations

import json
from pathlib import Path


def write(file: Path, rounds: int) -> None:
    """Fits every message of the kind that the leading process waits for; what does not fit must be refused."""
    base = [250.0 + 0.1 * (number % 7) for number in range(rounds)]
    times = [time for one in base for time in (one, one / 2)]
    lines = [
        {"ready": True},
        {"clock_step_us": 0.001},
        {"times_us": times, "started_us": [300.0 * number for number in range(2 * rounds)]},
        {"autotuned": {}},
    ]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
