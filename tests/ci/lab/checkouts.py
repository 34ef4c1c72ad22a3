"""A checkout with a session in it, for tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

from kernelgate.ci.lab import folder
from tests.ci.lab import session_events as made


def begun(root: Path) -> Path:
    """Makes a repository of the folder: with the session `one` on an H200, and no card."""
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    (root / ".ci/kernels").mkdir(parents=True)
    folder.create(root, made.opened(gpu="NVIDIA H200"))
    return root
