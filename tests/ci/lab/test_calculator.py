"""The page's calculator and `kernelgate resources --tile` say the same, over a grid of what may be asked."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

from kernelgate.bench.build.machine_code import Occupancy, occupancy
from kernelgate.bench.core import hardware
from kernelgate.bench.explain import tile
from kernelgate.bench.explain.tile import BlockNeeds
from kernelgate.ci.lab import page
from kernelgate.ci.lab.page import Calculator
from tests.workflows import node

SCRIPT = Path(page.__file__).parent / "templates/calculator.js"
RUN = """
const { facts, asked } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const said = (changed) => {
  const { fit, bytes, about } = calculator({ ...facts.rules, ...changed });
  const found = asked.blocks.map((needs) => facts.gpus.map((gpu) => fit(needs, gpu)));
  return { found, bytes: asked.words.map(bytes), about: asked.least.map(about) };
};
const right = said({});
const same = asked.changed.filter((one) => JSON.stringify(said(one).found) === JSON.stringify(right.found));
console.log(JSON.stringify({ ...right, same }));
"""
THREADS = (1, 33, 96, 128, 512, 1000)
SHARED = (0, 1, 1023, 8192, 33_000, 45_670, 48 << 10, 99 << 10, (99 << 10) + 1, 163 << 10, 227 << 10, 228 << 10)
REGISTERS = (0, 1, 16, 32, 33, 64, 80, 128, 168, 254, 255)
LEAST = (0, 15, 160, 204, 205, 206, 255, 256, 400)
WORDS = ("48KiB", "49152", "100B", "0", "48MiB", "", "12x", "1234567890")


BLOCKS = list(product(SHARED, THREADS, REGISTERS))
TILES = list(product(SHARED, (128, 1024), LEAST))
CHANGED = {
    "registers_per_warp_unit": 512,
    "schedulers": 1,
    "system_shared": 0,
    "shared_unit": 1,
    "registers_beside": 49,
}
"""Rules, each changed by little."""


def by_script() -> dict[str, Any]:
    """What the page's script says of the grid; `same`: the changed rules by which it would say nothing else."""
    started = node.command()
    assert started, "Node is missing; `make test` brings it"
    blocks = [{"shared_bytes": s, "threads": t, "registers": r} for s, t, r in BLOCKS]
    blocks += [{"shared_bytes": s, "threads": t, "least_registers": least} for s, t, least in TILES]
    changed = [{name: value} for name, value in CHANGED.items()]
    asked = {"changed": changed, "blocks": blocks, "words": WORDS, "least": LEAST}
    given = json.dumps({"facts": page.calculator_data(Calculator()), "asked": asked}, default=dict)
    words = [*started, "-e", SCRIPT.read_text(encoding="utf-8") + RUN]
    done = subprocess.run(words, input=given, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def plain(fits: Occupancy | str) -> dict[str, Any]:
    return {"problem": fits} if isinstance(fits, str) else asdict(fits) | {"limits": list(fits.limits)}


def test_the_page_calculates_what_the_verb_does() -> None:
    """And would not by other rules: the grid reaches the edges at which each of them decides."""
    said, gpus = by_script(), [model for _, model in sorted(hardware.GPUS.items())]
    for (shared, threads, registers), found in zip(BLOCKS, said["found"], strict=False):
        for gpu, one in zip(gpus, found, strict=True):
            fits = occupancy(gpu.limits, threads, registers, shared)
            assert one == plain(fits) if fits.blocks else "does not fit" in one["problem"]
    for (shared, threads, least), found in zip(TILES, said["found"][len(BLOCKS) :], strict=True):
        assert found == [plain(tile.fit(BlockNeeds("", shared, threads, least), gpu)) for gpu in gpus]
    sizes = [tile.plain(words, 4) for words in WORDS]
    assert said["bytes"] == [None if one is None else one.shared_bytes for one in sizes]
    assert said["about"] == [tile.about(least) for least in LEAST]
    assert said["same"] == []
