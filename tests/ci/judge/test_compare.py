"""`kernelgate compare`: files in, a verdict a file out, and one exit code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kernelgate.bench import record
from kernelgate.ci.commands.cli import run
from tests.ci.records import case, noise, paired_record, with_calls
from tests.runs import run_record

WRONG = record.Calls(compared=200, failed=1)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a record of each kind, and a broken one; the tests run in it, without a policy file."""
    rng = np.random.default_rng(1)
    made = {
        "same": paired_record(*noise(rng)),
        "slower": paired_record(*noise(rng, 0.05)),
        "slight": paired_record(*noise(rng, 0.02)),
        "faster": paired_record(*noise(rng, -0.2)),
        "short": paired_record(*noise(rng, rounds=3)),
        "wrong": run_record((with_calls(case(*noise(rng)), head=WRONG),)),
        "wrong_base": run_record((with_calls(case(*noise(rng)), base=WRONG),)),
    }
    for name, content in made.items():
        record.write(content, tmp_path / f"{name}.json")
    (tmp_path / "broken.json").write_text('{"schema": "kernelgate.run/2", "cases": [', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (("faster",), 0),
        (("slower",), 1),
        (("slight",), 2),
        (("missing",), 3),
        (("wrong",), 1),
        (("wrong_base",), 3),
        (("faster", "same", "broken"), 3),
        (("broken", "slower", "same", "faster"), 1),
    ],
)
def test_the_exit_code_is_the_worst_of_all_records(files: Path, names: tuple[str, ...], code: int) -> None:
    assert run(["compare", *(str(files / f"{name}.json") for name in names)]) == code


def test_json_is_one_object_a_line_with_everything_in_it(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del files
    names = ["slower.json", "broken.json", "same.json"]
    assert run(["compare", "--json", *names]) == 1
    printed = capsys.readouterr().out
    slower, broken, same = (json.loads(line, parse_constant=pytest.fail) for line in printed.splitlines())
    assert [one["record"] for one in (slower, broken, same)] == names
    assert (slower["verdict"], same["verdict"]) == ("regressed", "equivalent")
    (one,) = slower["cases"]
    assert (one["id"], one["verdict"], one["direction"]) == ("one", "regressed", "slower")
    low, high = one["interval_pct"]
    assert low < 5 < high
    assert one.keys() >= {"change_pct", "p", "cliffs_delta", "minimum_detectable_pct", "findings", "per_process"}
    assert (broken["verdict"], broken["cases"]) == ("inconclusive", [])
    assert broken["reason"].startswith("cannot be judged: broken.json is not a kernelgate.run/2 record")
