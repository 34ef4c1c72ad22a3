"""This machine as a CPU, whatever else it has: so that tests without the mark `gpu` measure the same everywhere."""

from __future__ import annotations

from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.system import environment

CPU = record.Environment(device=environment.cpu(Path("/")), host="here")
