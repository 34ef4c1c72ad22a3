"""Two commands are run in turn, and what they print is compared: real processes, real files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from kernelgate.bench import record
from kernelgate.bench.system import environment
from kernelgate.bench.timing import command_pair
from kernelgate.ci.commands import cli

PROGRAM = """
import json, random, sys
factor = float(sys.argv[1])
print("warming up")
times = {"small": 10, "large": 500}
drawn = {name: [factor * us * random.gauss(1, 0.002) for _ in range(30)] for name, us in times.items()}
print(json.dumps(drawn, indent=1))
"""


@pytest.fixture(autouse=True)
def described(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the seconds that torch takes to be imported; and no other measurement is waited for."""
    monkeypatch.setattr(environment, "describe", lambda: record.Environment(device=record.Device(name="CPU")))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def program(tmp_path: Path) -> str:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    return f"{sys.executable} -S {file}"


def test_a_slower_command_is_named_with_its_size(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "run.json"
    assert cli.run(["pair", f"{program} 1", f"{program} 1.2", "-o", str(kept), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {case["id"]: case["verdict"] for case in found["cases"]} == {"small": "regressed", "large": "regressed"}
    assert all(case["change_pct"] == pytest.approx(20, abs=1) for case in found["cases"])
    made = record.read(kept)
    assert [note.text for note in made.notes][:2] == [f"base: {program} 1", f"head: {program} 1.2"]
    assert {len(timing.samples_us["base"]) for one in made.processes for timing in one.timings} == {30}
    # The kept record tells the same again.
    assert cli.run(["compare", "--json", str(kept)]) == 1


@pytest.mark.slow
def test_the_same_command_twice_is_never_called_slower_or_faster(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["pair", f"{program} 1", f"{program} 1"]) in (2, 3)
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2
    assert all(" → " in line and line.split()[1] in ("small", "large") for line in said)
    assert not any("regressed" in line or "certain, but" in line for line in said)


@pytest.mark.slow
def test_a_record_that_cannot_be_kept_any_more_does_not_keep_the_verdict_back(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "kept" / "run.json"
    fills_up = f"rm -rf {place.parent}; touch {place.parent}; {program} 1.2"
    assert cli.run(["pair", f"{program} 1", fills_up, "-o", str(place)]) == 74
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 2
    assert f"kernelgate: {place} cannot be written: " in printed.err.splitlines()[-1]


@pytest.mark.slow
def test_what_prints_no_times_is_compared_by_how_long_it_runs() -> None:
    made = command_pair.run(
        command_pair.CommandPair("true", "sleep 0.03", processes=1), lambda _: frozenset(), lambda _: None
    )
    (timing,) = made.processes[0].timings
    assert timing.case == command_pair.WALL
    assert min(timing.samples_us["head"]) > 30_000
    assert len(timing.samples_us["base"]) == command_pair.ROUNDS
    # Who goes first is drawn in each round.
    assert 0 < sum(timing.positions["base"]) < command_pair.ROUNDS


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("echo broken; exit 3", "the head ended with 3: echo broken; exit 3: broken"),
        ("kill -9 $$", "the head was killed by SIGKILL"),
        ("sleep 60", "the head took more than 0.5 s"),
        ('echo \'{"small": "fast"}\'', "JSON in which 'small' is neither a time nor a list of times; --wall"),
        ("echo '{\"small\": [1, -2]}'", "'small' with a time of -2 µs"),
        ("echo '{\"other\": 1}'", "the base printed times of small, the head of other: name them alike"),
        ("echo '{\"small\": []}'", "'small' with no times"),
        ("true {out}", "the head wrote nothing to {out}"),
        ("head -c 20000000 /dev/zero", "the head printed more than 16 MiB: let it write times to {out}"),
        ("echo half > {out}", "what the head wrote to {out} is no JSON object"),
    ],
)
def test_what_cannot_be_compared_is_said(head: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    patience = "0.5" if head == "sleep 60" else "60"
    assert cli.run(["pair", "echo '{\"small\": 1}'", head, "--timeout", patience]) == 3
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_a_command_that_stops_between_one_time_and_twenty_is_asked_for_more(capsys: pytest.CaptureFixture[str]) -> None:
    two = "echo '{\"small\": [1, 2]}'"
    assert cli.run(["pair", two, two]) == 3
    assert "too few times: 10 times of a case in 5 runs; let it print 20, or one" in capsys.readouterr().err


def nvbench(folder: Path, *, samples: bool) -> dict[str, object]:
    """As nvbench writes it: a state with its mean, or with a file of samples beside; one that was skipped."""
    summaries = [{"tag": command_pair.MEAN, "data": [{"name": "value", "value": "2.5e-05"}]}]
    if samples:
        np.array([2e-5, 3e-5], "<f4").tofile(folder / "0.bin")
        data = [{"name": "filename", "value": "0.bin"}, {"name": "size", "value": "2"}]
        summaries.append({"tag": command_pair.SAMPLES, "data": data})
    states = [{"name": "Device=0 N=4", "summaries": summaries}, {"name": "Device=0 N=8", "is_skipped": True}]
    return {"benchmarks": [{"name": "copy", "states": states}]}


def test_nvbenchs_means_and_samples_are_read(tmp_path: Path) -> None:
    for samples, expected in ((False, (25.0,)), (True, (20.0, 30.0))):
        found = command_pair.times_of(nvbench(tmp_path, samples=samples), 1.0, tmp_path)
        assert list(found) == ["copy Device=0 N=4"]
        assert found["copy Device=0 N=4"] == pytest.approx(expected)
    (tmp_path / "0.bin").unlink()
    with pytest.raises(ValueError, match="not as nvbench writes it"):
        command_pair.times_of(nvbench(tmp_path, samples=False) | {"benchmarks": [{"name": "copy"}]}, 1.0, tmp_path)
