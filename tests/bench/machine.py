"""This machine as a CPU, whatever else it has: so that tests without the mark `gpu` measure the same everywhere."""

from __future__ import annotations

from pathlib import Path

from bench import environment, record

CPU = record.Environment(device=environment.cpu(Path("/")), host="here")
