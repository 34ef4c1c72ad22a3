"""Changes the judge and the timing a little, one change at a time, and counts the changes that no test notices.

mutmut makes the changes and runs those tests that reach each; `make mutants`. A name is a module, function and number:
`mutmut show NAME` prints the change.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent

LEAST = 0.90
"""Share of the changes that tests must notice."""

SURVIVED = {0, 5, 33}
"""What mutmut notes where the tests pass, and where no test reaches the change; all else that ended is a test that
failed or took too long."""


def outcomes(folder: Path) -> dict[str, int]:
    """By name, how the tests of each change ended, of those that were tried."""
    read = (json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.rglob("*.meta")))
    return {name: code for one in read for name, code in one["exit_code_by_key"].items() if code is not None}


def table(found: Mapping[str, int]) -> Iterable[str]:
    """A line for each module, and one for all: noticed, tried, share."""
    by_module: defaultdict[str, Counter[bool]] = defaultdict(Counter)
    for name, code in found.items():
        by_module[name.rpartition(".")[0]][code not in SURVIVED] += 1
    for module, count in sorted(by_module.items()):
        yield f"{module:<44} {count[True]:>6} of {count.total():>6}  {count[True] / count.total():.1%}"
    yield f"{'all':<44} {noticed(found):>6} of {len(found):>6}  {noticed(found) / len(found):.1%}"


def noticed(found: Mapping[str, int]) -> int:
    return sum(code not in SURVIVED for code in found.values())


def main(patterns: Sequence[str]) -> int:
    done = subprocess.run([Path(sys.executable).with_name("mutmut"), "run", *patterns], cwd=ROOT)
    found = outcomes(ROOT / "mutants")
    if done.returncode or not found:
        print("mutmut could not try the changes; its last lines say why", file=sys.stderr)
        return done.returncode or 1
    print(*sorted(name for name, code in found.items() if code in SURVIVED), *table(found), sep="\n")
    return int(noticed(found) < LEAST * len(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
