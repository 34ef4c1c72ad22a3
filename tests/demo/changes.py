"""The pull requests of the demo, which .ci/proposals.toml has: real changes, each with its author's description."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelgate.ci.github import prove
from kernelgate.ci.github.prove import Change

EVERY = prove.read(Path(__file__).parents[2] / prove.FILE)
FEWER = (Change(file=".ci/kernels/attention.py", old=', case(512, 1, 4, "bf16")]', new="]"),)
"""Two cases of three, so that it ends in time."""


def apply(changes: Sequence[Change], tree: Path) -> None:
    old = {one.file: (tree / one.file).read_text(encoding="utf-8") for one in changes}
    for name, text in prove.changed(old, changes).items():
        (tree / name).write_text(text, encoding="utf-8")
