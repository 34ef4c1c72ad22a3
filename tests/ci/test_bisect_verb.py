"""`kernelgate bisect` on real commits, on the CPU: what it builds, measures, steps over and says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.ci import cli
from tests import miniature

CARD = miniature.SCALE_CARD.replace("    cases = [dict(N=64", "    cpu_cases = cases = [dict(N=65536")
LOOP = "for (int64_t i = 0; i < x.numel(); ++i) {"
AGAIN = f"for (int again = 0; again < 4; ++again) {LOOP}"


def source(number: int, slow: bool = False, broken: bool = False, wrong: bool = False, crash: bool = False) -> str:
    """The kernel of one commit: every one compiles to another library."""
    text = miniature.SCALE.replace(LOOP, AGAIN if slow else LOOP)
    text = text.replace("factor * static", "1.5 * factor * static") if wrong else text
    text = text.replace(LOOP, f"__builtin_trap();\n  {LOOP}") if crash else text
    return f"{text}\nvoid number_{number}() {{{' missing();' if broken else ''}}}\n"


def commits(repo: Path, sources: list[str | None]) -> list[str]:
    """One for each source; None changes something else."""
    shas = []
    for number, text in enumerate(sources):
        files = {"README": f"{number}"} if text is None else {"csrc/scale.cpp": text}
        shas.append(miniature.commit(repo, files))
    return shas


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = miniature.repository(tmp_path / "repo", {".ci/kernels/scale.py": CARD, "README": ""})
    monkeypatch.chdir(made)
    return made


@pytest.mark.slow
def test_the_slow_commit_is_found_among_eight(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One of them does not compile, one gives wrong results, one crashes, one does not touch the kernel."""
    shas = commits(
        repo,
        [
            source(0),
            source(1, wrong=True),
            source(2, crash=True),
            None,
            source(4),
            source(5, broken=True),
            source(6, slow=True),
            source(7, slow=True),
        ],
    )
    code = cli.run(["bisect", shas[0], shas[7], "--rounds", "20", "--seed", "1", "--json"])
    said = capsys.readouterr()
    assert said.out, said.err
    found = json.loads(said.out)
    assert (code, found["found"]) == (0, "found"), said.err
    assert found["culprits"] == [shas[5], shas[6]], "the one before it does not compile, and may be it as well"
    assert found["change_pct"] > 100
    assert "does not compile" in found["stepped_over"][shas[5]]
    assert "results are wrong" in found["stepped_over"][shas[1]]
    assert "SIG" in found["stepped_over"][shas[2]]
    made = record.read(repo / "out" / "bisect.json")
    assert {process.role for process in made.processes} == {"bisect"}
    assert f"commit:{shas[6]}" in made.processes[0].loaded
    assert shas[3] not in {build.sha for build in made.builds}, "nothing of it is measured"
