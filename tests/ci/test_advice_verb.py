"""`kernelgate recommend` and `kernelgate outcomes`: what they print, their schemas, files and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pyarrow import parquet

from kernelgate.ci.commands import cli
from tests.ci.answered import validated
from tests.ci.lab.made_up import opened, telling, tried, write

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
REPORT = str(DATA / "nsight" / "bank_conflicts.ncu-rep")


@pytest.fixture
def sessions(tmp_path: Path) -> str:
    folder = tmp_path / "sessions"
    found: dict[str, list[Any]] = {}
    for one in telling():
        found.setdefault(one.session.name, [one.session]).append(one.tried)
    write(folder, *(tuple(events) for events in found.values()))
    return str(folder)


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.run(list(words))
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize("words", [("recommend", REPORT), ("outcomes",)])
def test_the_answer_fits_its_schema(words: tuple[str, ...], sessions: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = asked(capsys, *words, "--json", "--sessions", sessions)
    schema = json.loads((ROOT / "docs" / "schemas" / f"{words[0]}.schema.json").read_text(encoding="utf-8"))
    assert code == 0
    jsonschema.validate(json.loads(out), schema)


def test_a_report_gets_its_advice(sessions: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = asked(capsys, "recommend", REPORT, "--sessions", sessions)
    assert code == 0
    assert "by the chance that it helps: the chances' Brier skill against the base rate is" in out
    assert "1. swizzle: swizzle or pad the tile" in out
    assert "n = 8; 8 of 8 tries against this bottleneck helped" in out


def test_a_record_with_a_profile_gets_its_advice(sessions: str, capsys: pytest.CaptureFixture[str]) -> None:
    record = str(DATA / "causes" / "uncoalesced.json")
    code, out, _ = asked(capsys, "recommend", record, "--json", "--sessions", sessions)
    assert code == 0
    answer = json.loads(out)
    assert (answer["architecture"], answer["bottleneck"]) == ("sm_90", "coalescing")
    links = [one["link"] for one in answer["recommendations"]]
    assert links
    assert [link for link in links if not link.startswith("docs/CUDA_COOKBOOK.md#")] == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("recommend", str(DATA / "comparisons" / "identical.json")), 3, "holds no profile of the head"),
        (("recommend", "missing.ncu-rep"), 3, "missing.ncu-rep: cannot be read"),
        (("recommend", REPORT, "--case", "s512"), 64, "--case is for run records"),
        (("outcomes", "--format", "pairs"), 64, "--format and -o go together"),
        (("outcomes", "--format", "parquet", "-o", "x.parquet", "--sessions", "nowhere"), 3, "nothing to export"),
    ],
)
def test_what_cannot_be_done_is_said(
    words: tuple[str, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, _, err = asked(capsys, *words)
    assert (found, said in err) == (code, True), err


def test_outcomes_leave_as_parquet(sessions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "outcomes.parquet"
    assert asked(capsys, "outcomes", "--format", "parquet", "-o", str(path), "--sessions", sessions)[0] == 0
    table = parquet.read_table(path).to_pylist()
    assert len(table) == 40
    assert sum(row["helped"] for row in table) == 16
    first = table[0]
    assert (first["action"], first["gpu"], first["change_pct"]) == ("swizzle", "NVIDIA H200", -30.0)
    assert first["gain_pct"] == pytest.approx(30.0)


def test_pairs_hold_what_makes_the_slow_and_the_fast_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, path = tmp_path / "sessions", tmp_path / "pairs.jsonl"
    faster, same, slower = (tried(number, change_pct=change) for number, change in ((1, -9.0), (2, 0.0), (3, 9.0)))
    write(folder, (opened("one"), faster, same, slower, tried(4)))
    for name in ("base", "try-1", "try-2", "try-3"):
        (folder / "one" / f"{name}.diff").write_text(name, encoding="utf-8")
    words = ("outcomes", "--format", "pairs", "-o", str(path), "--sessions", str(folder))
    assert asked(capsys, *words) == (0, f"{path}\n", "")
    code, out, err = asked(capsys, *words, "--json")
    assert (code, len(validated("outcomes", out)["outcomes"]), err) == (0, 4, f"{path}\n")
    pairs = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(one["number"], one["slow"], one["fast"], one["faster"]) for one in pairs] == [
        (1, ["base"], ["base", "try-1"], "head"),
        (3, ["base", "try-3"], ["base"], "base"),
    ]
    assert pairs[0]["commit"] == "c0ffee"
