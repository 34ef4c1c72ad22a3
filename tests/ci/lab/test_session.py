"""A whole session on the CPU kernel, from `new` to `close`, as a newcomer would type it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.ci.commands import cli
from kernelgate.ci.lab import folder
from kernelgate.ci.lab.log import PatternUse, TriedChange

ROOT = Path(__file__).parents[3]
CARD = ".ci/kernels/attention.py"
KERNEL = "csrc/attention/cpu/block.h"
CASES = 'case(512, 1, 8, "fp32"), case(512, 1, 8, "fp32", causal=True), case(512, 1, 4, "bf16")'
ONCE = "    softmax_step<Width>(w, keys);\n"
WASTE = '    for (int again = 0; again < 20; ++again) { asm volatile("" ::: "memory"); read_rows(k, keys, w.k); }\n'


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one commit, whose kernel reads its keys too often."""
    tree = tmp_path / "clone"
    for name in ("csrc", ".ci"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("sessions"))
    edit(tree, CARD, CASES, 'case(128, 1, 2, "fp32")')
    edit(tree, KERNEL, ONCE, WASTE + ONCE)
    git(tree, "init", "--quiet", "--initial-branch=main")
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message=base")
    monkeypatch.chdir(tree)
    return tree


def git(tree: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(["git", *who, *words], cwd=tree, check=True, capture_output=True, text=True).stdout.strip()


def edit(tree: Path, name: str, old: str, new: str) -> None:
    text = (tree / name).read_text(encoding="utf-8")
    assert old in text
    (tree / name).write_text(text.replace(old, new), encoding="utf-8")


def session(*words: str) -> int:
    return cli.run(["session", *words])


@pytest.mark.slow
def test_a_session_from_its_beginning_to_its_report(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert session("new", "read the keys once", "--name", "keys", "--hypothesis", "keys are read too often") == 0
    assert "environment comes before any change" in said(capsys, session("try", "nothing", "yet"), 64)
    assert "environment comes before build" in said(capsys, session("gate", "build"), 64)
    assert session("gate", "environment", "--skip", "looked at by hand") == 0
    for gate in ("build", "correctness", "performance", "profile"):
        assert session("gate", gate) == 0, capsys.readouterr().err

    assert "nothing changed below" in said(capsys, session("try", "nothing", "yet"), 64)
    edit(clone, KERNEL, WASTE, "")
    assert session("try", "read the keys once", "they stay in the workspace") in (0, 2), capsys.readouterr().err
    assert "try 1 is neither kept nor reverted" in said(capsys, session("try", "more", "so"), 64)
    tried = record.read(clone / ".ci/sessions/keys/work/try-1/run.json")
    assert {one.role for one in tried.processes} == {"paired"}, "no witness has a say in a session"
    assert session("keep", "--why", "it is less work, whatever a busy machine measures") == 0

    edit(clone, KERNEL, "constexpr int kBlockK = 64;", "constexpr int kBlockK = 64")
    assert session("try", "a typo", "fast fingers") == 1
    assert session("revert") == 0
    assert "constexpr int kBlockK = 64;" in (clone / KERNEL).read_text()
    assert WASTE not in (clone / KERNEL).read_text()

    edit(clone, KERNEL, "w.row_sum[lane];", "w.row_sum[lane] * 1.5f;")
    (clone / "notes.md").write_text("mine")
    assert session("try", "weigh more", "it is wrong") == 1
    assert session("revert") == 0
    assert (clone / "notes.md").read_text() == "mine"

    capsys.readouterr()
    assert session("status", "--json") == 0
    status = json.loads(capsys.readouterr().out)
    assert [one["decision"] for one in status["tries"]] == ["kept", "reverted", "reverted"]
    assert [one["failed"] for one in status["tries"]] == [None, "build", "correctness"]
    assert status["tries"][0]["interval_pct"] is not None
    assert session("close", "--learnt", "what is read once is enough") == 0
    assert "what is read once is enough" in (clone / ".ci/sessions/keys/report.md").read_text()
    assert "no session is open" in said(capsys, session("next"), 64)
    events = folder.read(clone / ".ci/sessions/keys").events
    assert len([one for one in events if isinstance(one, TriedChange)]) == 3
    assert not [one for one in events if isinstance(one, PatternUse)]
    assert "work" not in git(clone, "status", "--short", "--untracked-files=all")


def said(capsys: pytest.CaptureFixture[str], code: int, wanted: int) -> str:
    """What an error said."""
    assert code == wanted
    return capsys.readouterr().err
