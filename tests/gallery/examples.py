"""docs/examples: comments as GitHub shows them, of kept records of an H200. Write them anew:
`.venv/bin/python -m tests.gallery.examples`"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.core import files
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


@cache
def texts() -> Mapping[str, str]:
    """The comments by their files' names."""
    rules = policy.load(ROOT / ".ci" / "kernelgate.toml")
    found = {}
    for name, kept in RECORDS.items():
        path = f"tests/data/{kept}"
        found[f"{name}.md"] = render.comment(reported(record.read(ROOT / path), rules, path).report)
    return found


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts().items():
        files.write(FOLDER / name, text)
        print(FOLDER / name)
