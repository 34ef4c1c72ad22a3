"""docs/examples: comments as GitHub shows them, of kept records of an H200. Write them anew:
`.venv/bin/python -m tests.gallery.examples`

With a folder it writes a dashboard of the kept records there, as `make docs` does for the published pages.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.core import files
from kernelgate.ci.commands import cli
from kernelgate.ci.document import render
from kernelgate.ci.policy import policy
from kernelgate.ci.report.build import reported

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "examples"
RECORDS = {
    "faster": "comparisons/wgmma.json",
    "slower": "comparisons/slower_5pct.json",
    "slower-and-why": "cards/swiglu_slower.json",
    "likely-slower": "comparisons/slower_1pct.json",
    "no-change": "cards/int8_same.json",
    "cannot-tell": "cards/rmsnorm_same.json",
}

DASHBOARD = ("comparisons", "cards", "pairs")
"""Folders of records below tests/data."""


@cache
def texts() -> Mapping[str, str]:
    rules = policy.load(ROOT / ".ci" / "kernelgate.toml")
    found = {}
    for name, kept in RECORDS.items():
        path = f"tests/data/{kept}"
        found[f"{name}.md"] = render.comment(reported(record.read(ROOT / path), rules, path).report)
    return found


def dashboard(to: Path) -> int:
    """The exit code of the command that writes it."""
    kept = [path for folder in DASHBOARD for path in sorted((ROOT / "tests" / "data" / folder).glob("*.json"))]
    with tempfile.TemporaryDirectory() as store:
        history = ("history", "--store", store)
        return cli.run([*history, "add", *map(str, kept)]) or cli.run([*history, "site", "-o", str(to)])


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(dashboard(Path(sys.argv[1])))
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts().items():
        files.write(FOLDER / name, text)
        print(FOLDER / name)
