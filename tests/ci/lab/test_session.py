"""A whole session on the CPU, from `new` to `close`, as a newcomer would type it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.ci.commands import cli
from kernelgate.ci.lab import folder
from kernelgate.ci.lab.log import PatternUse, TriedChange
from tests import miniature
from tests.called import EndsWith

KERNEL = "csrc/scale.cpp"
CHECKS = "".join(f'  STD_TORCH_CHECK({one}.is_contiguous(), "{one}: expected without gaps");\n' for one in ("x", "out"))
FAST = miniature.SCALE.replace("double factor) {\n", f"double factor) {{\n{CHECKS}")
LOOP = "    static_cast<float*>(out.mutable_data_ptr())[i]"
SLOW = FAST.replace(LOOP, f"    for (volatile int k = 0; k < 40; k = k + 1) {{}}\n{LOOP}")
CARD = miniature.SCALE_CARD.replace("    cases = [dict(N=64", "    cpu_cases = cases = [dict(N=65536")


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one commit, whose kernel waits for each element."""
    tree = miniature.repository(tmp_path / "clone", {KERNEL: SLOW, ".ci/kernels/scale.py": CARD})
    monkeypatch.chdir(tree)
    return tree


def session(*words: str) -> int:
    return cli.run(["session", *words])


@pytest.mark.parametrize("name", ["Has Capitals", "../up", "x" * 65, "taken"])
def test_a_name_that_no_session_can_have_is_refused_before_anything_else(
    clone: Path, name: str, ends_with: EndsWith
) -> None:
    (clone / ".ci/sessions/taken").mkdir(parents=True)
    (clone / ".ci/kernels/scale.py").write_text("not looked at: (")
    before = sorted(clone.rglob("*"))
    assert name in ends_with(64, "session", "new", "wait for nothing", "--name", name).err
    assert sorted(clone.rglob("*")) == before


@pytest.mark.slow
def test_a_session_from_its_beginning_to_its_report(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = clone / KERNEL
    assert session("new", "wait for nothing", "--name", "loop", "--hypothesis", "each element waits") == 0
    assert "environment comes before any change" in said(capsys, session("try", "nothing", "yet"), 64)
    assert "environment comes before build" in said(capsys, session("gate", "build"), 64)
    assert session("gate", "environment", "--skip", "looked at by hand") == 0
    for gate in ("build", "correctness", "performance", "profile"):
        assert session("gate", gate) == 0, capsys.readouterr().err
    assert "nothing changed below" in said(capsys, session("try", "nothing", "yet"), 64)
    kernel.write_text(FAST)
    assert session("try", "leave out the idle loop", "each element waits for it") in (0, 2), capsys.readouterr().err
    assert "try 1 is neither kept nor reverted" in said(capsys, session("try", "more", "so"), 64)
    tried = record.read(clone / ".ci/sessions/loop/work/try-1/run.json")
    assert {one.role for one in tried.processes} == {"paired"}, "no witness has a say in a session"
    assert session("keep", "--why", "it is less work, whatever a busy machine measures") == 0
    for what, text in (
        ("a typo", FAST.replace("++i) {", "++i {")),
        ("wrong", FAST.replace("factor *", "1.5 * factor *")),
    ):
        kernel.write_text(text)
        (clone / "notes.md").write_text("mine")
        assert session("try", what, "to be refused") == 1
        assert session("revert") == 0
        assert (kernel.read_text(), (clone / "notes.md").read_text()) == (FAST, "mine")
    capsys.readouterr()
    assert session("status", "--json") == 0
    status = json.loads(capsys.readouterr().out)
    assert [one["decision"] for one in status["tries"]] == ["kept", "reverted", "reverted"]
    assert [one["failed"] for one in status["tries"]] == [None, "build", "correctness"]
    assert status["tries"][0]["interval_pct"] is not None
    assert session("close", "--learnt", "what waits for nothing is fast") == 0
    assert "what waits for nothing is fast" in (clone / ".ci/sessions/loop/report.md").read_text()
    assert "no session is open" in said(capsys, session("next"), 64)
    events = folder.read(clone / ".ci/sessions/loop").events
    assert len([one for one in events if isinstance(one, TriedChange)]) == 3
    assert not [one for one in events if isinstance(one, PatternUse)]
    assert "work" not in miniature.git(clone, "status", "--short", "--untracked-files=all")


def said(capsys: pytest.CaptureFixture[str], code: int, wanted: int) -> str:
    assert code == wanted
    return capsys.readouterr().err
