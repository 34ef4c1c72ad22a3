"""`kernelgate bisect` on real commits, on the CPU: what it builds, measures, steps over and says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench import record
from kernelgate.bench.measure import bisect
from kernelgate.ci.commands import cli
from tests import miniature

CARD = miniature.SCALE_CARD.replace("    cases = [dict(N=64", "    cpu_cases = cases = [dict(N=65536")
LOOP = "for (int64_t i = 0; i < x.numel(); ++i) {"
AGAIN = f"for (int again = 0; again < 4; ++again) {LOOP}"
FUZZED = CARD.replace("    def inputs", "    fuzz = dict(N=range(1, 300), dtype='fp32')\n\n    def inputs", 1)


def source(number: int, fault: str = "") -> str:
    """The kernel of one commit: every one compiles to another library."""
    text = miniature.SCALE.replace(LOOP, AGAIN if fault == "slow" else LOOP)
    text = text.replace("factor * static", "1.5 * factor * static") if fault == "wrong" else text
    text = text.replace(LOOP, f"__builtin_trap();\n  {LOOP}") if fault == "crash" else text
    return f"{text}\nvoid number_{number}() {{{' missing();' if fault == 'broken' else ''}}}\n"


def commits(repo: Path, faults: list[str]) -> list[str]:
    """One for each fault; the fourth changes something else."""
    sources = [{"csrc/scale.cpp": source(number, fault)} for number, fault in enumerate(faults)]
    return [miniature.commit(repo, files) for files in (*sources[:3], {"README": "4"}, *sources[4:])]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = miniature.repository(tmp_path / "repo", {".ci/kernels/scale.py": CARD, "README": ""})
    monkeypatch.chdir(made)
    return made


@pytest.mark.slow
def test_the_slow_commit_is_found_among_eight(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One of them does not compile, one gives wrong results, one crashes, one does not touch the kernel."""
    shas = commits(repo, ["", "wrong", "crash", "", "", "broken", "slow", "slow"])
    code, found, said = searched(capsys, shas[0], shas[7], "--rounds", "20", "--answer", "answer")
    assert (code, found["found"]) == (0, "found"), said
    assert json.loads((repo / "answer").read_text("utf-8")) == found
    assert found["culprits"] == [shas[5], shas[6]], "the one before it does not compile, and may be it as well"
    assert found["change_pct"] > 100
    assert "does not compile" in found["stepped_over"][shas[5]]
    assert "results are wrong" in found["stepped_over"][shas[1]]
    assert "SIG" in found["stepped_over"][shas[2]]
    made = record.read(repo / "out" / "bisect.json")
    assert {process.role for process in made.processes} == {"bisect"}
    assert f"commit:{shas[6]}" in made.processes[0].loaded
    assert shas[3] not in {build.sha for build in made.builds}, "nothing of it is measured"


def searched(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any], str]:
    code = cli.run(["bisect", *words, "--seed", "1", "--json"])
    said = capsys.readouterr()
    return code, json.loads(said.out or "{}"), said.err


@pytest.mark.slow
def test_the_commit_that_made_a_fuzz_case_fail(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Among eight, of which one does not compile and one crashes, which is another fault."""
    miniature.write(repo, {".ci/kernels/scale.py": FUZZED})
    shas = commits(repo, ["", "crash", "", "", "broken", "wrong", "wrong", "wrong"])
    code, found, said = searched(capsys, "--fuzz", shas[0], shas[7])
    assert (code, found["found"], found["culprits"]) == (0, "found", [shas[4], shas[5]]), said
    assert (found["failed"], found["runs"]) == (20, 20)
    assert found["chance"] >= 0.99
    assert "does not compile" in found["stepped_over"][shas[4]]
    assert found["fault"].startswith("error "), found["fault"]
    assert found["repeat"].startswith("kernelgate fuzz --seed 1 --case scale/")

    named = found["case"]
    code, found, said = searched(capsys, "--fuzz", shas[0], shas[3], "--case", named)
    assert (code, found["found"]) == (2, "none"), said
    code, found, said = searched(capsys, "--fuzz", shas[5], shas[7], "--case", named)
    assert (code, found) == (3, {})
    assert f"{shas[5][:12]}, the good end, fails as well: name an older one" in said


def test_that_no_fuzz_case_fails_is_an_answer_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def opened(*_: object) -> None:
        raise bisect.NothingFailsError("no fuzz case fails at b and passes at a (seed 1)")

    monkeypatch.setattr(bisect, "opened_trial", opened)
    answer = tmp_path / "answer.json"
    assert cli.run(["bisect", "a", "b", "--fuzz", "--answer", str(answer)]) == 2
    said = capsys.readouterr()
    found = json.loads(answer.read_text(encoding="utf-8"))
    assert (found["found"], found["culprits"]) == ("none", [])
    assert (said.out, found["why"] in said.err) == ("", True)


@pytest.mark.slow
def test_the_commit_of_a_submodule(tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three rolls of it: one makes the kernel slower, one makes it wrong, one does not compile."""
    faults = "slow", "wrong", "broken"
    rolls = [
        [source(at), source(at + 1, fault), source(at + 2, fault)] for at, fault in zip((1, 4, 7), faults, strict=True)
    ]
    library = miniature.repository(tmp_path / "library", {"src/scale.cpp": source(0), "README": "of the library"})
    miniature.write(repo, {".ci/kernels/scale.py": FUZZED.replace('"csrc/scale*"', '"third_party/scale/src/scale*"')})
    local = ("-c", "protocol.file.allow=always", "submodule", "--quiet")
    miniature.git(repo, *local, "add", str(library), "third_party/scale")
    ends, culprits = [miniature.commit(repo)], []
    for roll in rolls:
        made = [miniature.commit(library, {"src/scale.cpp": text}) for text in roll]
        made.append(miniature.commit(library, {"README": f"after {len(ends)} rolls"}))
        miniature.git(repo / "third_party/scale", "pull", "--quiet")
        culprits.append((miniature.commit(repo), made[1]))
        ends.append(miniature.commit(repo, {"README": f"after {len(ends)} rolls"}))

    code, found, said = searched(capsys, ends[0], ends[1], "--rounds", "20")
    assert (code, found["found"], found["culprits"]) == (0, "found", [culprits[0][0]]), said
    inside = found["inside"]
    assert (inside["submodule"], inside["found"]) == ("third_party/scale", "found"), said
    assert inside["culprits"] == [culprits[0][1]]
    assert inside["change_pct"] > 100
    made_of = {process.id for process in record.read(repo / "out" / "bisect.json").processes}
    assert len(made_of) == found["processes"] + inside["processes"]

    code, found, said = searched(capsys, "--fuzz", ends[1], ends[2])
    assert (code, found["culprits"], found["inside"]["culprits"]) == (0, [culprits[1][0]], [culprits[1][1]]), said

    code, found, said = searched(capsys, "--build", ends[2], ends[3])
    assert (code, found["culprits"], found["inside"]["culprits"]) == (0, [culprits[2][0]], [culprits[2][1]]), said
    assert "csrc" not in found["why"]
    assert "third_party/scale/src/scale.cpp" in found["inside"]["why"]
    _, _, said = searched(capsys, "--build", ends[2], ends[3])
    assert "2/2" not in said, "all that compiles is in the cache"

    miniature.git(repo, "submodule", "--quiet", "deinit", "--force", "third_party/scale")
    code, found, said = searched(capsys, "--build", ends[2], ends[3])
    assert code == 64
    assert "the good end" in said
