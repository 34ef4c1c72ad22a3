"""`kernelgate compare`: files in, a verdict a file out, and one exit code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kernelgate.bench import record
from kernelgate.ci.commands.cli import run
from tests.ci.records import case, heads, noise, paired_record, with_calls
from tests.runs import run_record

ROOT = Path(__file__).parents[3]
WRONG = record.Calls(compared=200, failed=1)
L4_CASE = "s512_b32_h8_d64_fp16"


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
    assert low < one["change_pct"] < high
    assert one["change_pct"] == pytest.approx(5, abs=0.2)
    assert 0 <= one["p"] < 0.001
    assert 0.9 < one["cliffs_delta"] <= 1
    assert 0 < one["minimum_detectable_pct"] < 1
    assert (broken["verdict"], broken["cases"]) == ("inconclusive", [])
    assert broken["reason"].startswith("cannot be judged: broken.json is not a kernelgate.run/2 record")


def test_what_a_record_holds_cannot_act_on_a_terminal(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile, rng = "one\n::error::x\x1b[31m\u009b31m\u202e", np.random.default_rng(1)
    both = [case(*noise(rng, change), id_=f"{hostile}{change}") for change in (0.0, 0.05)]
    record.write(run_record(both), files / "hostile.json")
    run(["compare", "hostile.json"])
    run(["compare", "--json", "hostile.json"])
    printed = capsys.readouterr().out
    assert all(character.isprintable() for line in printed.splitlines() for character in line)


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        (["same.json", "--preset", "lax"], 64, "no preset 'lax'"),
        (["same.json", "--policy", "missing.toml"], 3, "missing.toml: the policy cannot be read"),
        (["same.json", "--baseline", "missing.json"], 3, "missing.json: cannot be read"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    files: Path, capsys: pytest.CaptureFixture[str], asked: list[str], code: int, said: str
) -> None:
    del files
    assert run(["compare", *asked]) == code
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("device", "factor", "code", "said"),
    [
        ("NVIDIA H200", 1.0, 3, "measured on NVIDIA L4, this record on NVIDIA H200"),
        ("NVIDIA L4", 1.0, 3, "the baseline drifted by +7.7% within process 1"),
        ("NVIDIA L4", 1.4, 1, "slower"),
    ],
)
def test_the_l4_reference_judges_an_l4_and_refuses_others(
    files: Path, capsys: pytest.CaptureFixture[str], device: str, factor: float, code: int, said: str
) -> None:
    rng = np.random.default_rng(3)
    steady = np.array(record.read(ROOT / ".ci" / "baseline_s512.json").processes[0].timings[0].samples_us["head"][2:60])
    run_ = heads([factor * rng.choice(steady, 100) for _ in range(5)], L4_CASE, device)
    record.write(run_, files / "run.json")
    assert run(["compare", "run.json", "--details", "--baseline", str(ROOT / ".ci" / "baseline_s512.json")]) == code
    assert said in " ".join(capsys.readouterr().out.split())
