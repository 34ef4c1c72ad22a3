"""`kernelgate pr` on a clone of this repository: from an edit to the comment."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.check import fuzz
from kernelgate.bench.kernel import commit
from kernelgate.bench.system import lock
from kernelgate.ci.commands import cli
from kernelgate.ci.pipeline import local, pytest_plugin
from kernelgate.ci.policy.policy import Processes
from tests import miniature, runs
from tests.bench.machine import CPU
from tests.called import EndsWith
from tests.miniature import SCALE, SCALE_CARD
from tests.runs import run_record

ROOT = Path(__file__).parents[3]
FEW = ("edge_s1", "edge_s4", "edge_s63", "edge_s64")


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose one commit is this working tree, with small cases on the CPU."""
    tree = tmp_path / "clone"
    for folder in ("csrc", ".ci"):
        shutil.copytree(ROOT / folder, tree / folder)
    cases = 'case(512, 1, 8, "fp32"), case(512, 1, 8, "fp32", causal=True)'
    edit(tree, ".ci/kernels/attention.py", cases, 'case(64, 1, 2, "fp32")')
    miniature.git(tree, "init", "--quiet", "--initial-branch=main")
    miniature.commit(tree)
    monkeypatch.chdir(tree)
    monkeypatch.setattr("kernelgate.bench.system.environment.describe", lambda *_: CPU)
    whole = fuzz.run
    monkeypatch.setattr(fuzz, "run", lambda *words: whole(*words[:4], FEW, *words[5:]))
    return tree


def edit(tree: Path, name: str, old: str, new: str) -> None:
    path = tree / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.slow
def test_the_working_tree_is_compared_with_head(
    clone: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(clone, "csrc/attention/cpu/attention_cpu.cpp", "\n\n", '\n\nextern "C" int another_library() { return 1; }\n')
    compiled: list[Path] = []
    build_tree = commit.build_tree
    monkeypatch.setenv(lock.HELD, str(clone.parent / "held"))
    monkeypatch.setattr(commit, "build_tree", lambda tree, how: compiled.append(tree) or build_tree(tree, how))
    code = cli.run(["pr"])
    said = capsys.readouterr()
    assert compiled == [clone]
    measured = record.read(clone / "out" / local.RECORD)
    head = miniature.git(clone, "rev-parse", "HEAD")
    assert (measured.run.base_sha, measured.run.head_sha) == (head, None)
    assert measured.fuzz.status == "passed"
    assert [case.id for case in measured.cases] == ["s64_b1_h2_d64_fp32"]
    assert 2 <= sum(process.role == "paired" for process in measured.processes) <= Processes().limit
    assert code == int("Blocks: " in said.out)
    assert said.out == (clone / "out" / local.COMMENT).read_text(encoding="utf-8")
    assert f"The working tree vs `{head[:7]}`" in said.out
    assert "✅ correct: 4 of 4 fuzz cases" in said.out
    assert (clone / "out" / local.PAGE).read_text(encoding="utf-8").startswith("<!doctype html>")
    assert said.err.splitlines()[-1] == "Written: out/run.json, out/comment.md, out/page.html"
    taken, given_back = (clone.parent / "held").read_text(encoding="ascii").split()
    assert taken[0] == "-" != given_back[0], "once, through all phases: nobody else measures in between"


@pytest.mark.usefixtures("no_torch")
def test_a_kernel_that_does_not_compile_is_named_by_its_first_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    repo = miniature.repository(tmp_path / "repo", miniature.SCALE_FILES)
    miniature.write(repo, {"csrc/scale.cpp": "int broken = missing;\n", f"out/{local.RECORD}": "of another run"})
    monkeypatch.chdir(repo)
    said = ends_with(1, "pr").out
    assert said.startswith("### 🔧 Blocks: does not compile")
    assert said.splitlines()[2].startswith("`csrc/scale.cpp:1")
    assert "missing" in said.splitlines()[2]
    assert not (repo / "out" / local.RECORD).exists()
    assert "has no commit 'no-such-branch'" in ends_with(3, "pr", "--base", "no-such-branch").err


def test_without_a_change_the_last_commit_that_changed_a_kernel_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that a stranger's first command shows what kernelgate does."""
    tree = miniature.repository(tmp_path / "clone", miniature.SCALE_FILES)
    first = miniature.git(tree, "rev-parse", "HEAD")
    assert local.last_change(tree, first) is None, "no commit before it"
    changed = miniature.commit(tree, {"csrc/scale.cpp": f"// faster\n{miniature.SCALE}"})
    head = miniature.commit(tree, {"docs/a": "a"})
    cards = tree / ".ci/kernels"
    assert local.last_change(tree, head) == local.Compare(tree, first, changed, cards)
    said = " ".join(capsys.readouterr().err.split())
    assert f"no kernel differs from the base: the last commit that changed one, {changed[:9]} (" in said
    assert local.last_change(tree, first) is None, "the branch has changes of its own"
    (cards / "scale.py").write_text(f"# another\n{miniature.SCALE_CARD}", encoding="utf-8")
    assert local.last_change(tree, head) is None, "the working tree has a change"


def test_the_stored_baseline_of_this_device_is_found(tmp_path: Path) -> None:
    def stored(device: str, case: str) -> record.RunRecord:
        return run_record((runs.case(case, [runs.process({"head": (1.0,)})]),), runs.on(device))

    record.write(stored("NVIDIA L4", "a"), tmp_path / "baseline_1.json")
    record.write(stored("NVIDIA H200", "b"), tmp_path / "baseline_2.json")
    record.write(stored("NVIDIA H200", "a"), tmp_path / "baseline_3.json")
    (tmp_path / "baseline_0.json").write_text("no record", encoding="utf-8")
    asked = ("NVIDIA H200", "a"), ("NVIDIA A100", "a"), ("NVIDIA H200", "another kernel's")
    found = [local.stored_baseline(tmp_path, stored(*one)) for one in asked]
    assert [one and one[0] for one in found] == ["baseline_3.json", "baseline_1.json", None]


WORK = "    attend_block(arguments, task / blocks, static_cast<int>(task % blocks) * kBlockQ);\n"


@pytest.mark.slow
def test_an_authors_second_minute_takes_two_commands(clone: Path, ends_with: EndsWith) -> None:
    """Slower, the same where the comment's own command is run, and green once that is fixed. Whoever sits at the
    machine reads only the line "Now"."""
    base, source = miniature.git(clone, "rev-parse", "HEAD"), "csrc/attention/cpu/attention_cpu.cpp"
    edit(clone, source, WORK, WORK * 3)
    miniature.commit(clone)
    slower = ends_with(1, "pr", "--base", base).out
    assert re.match(r"### ❌ Blocks: [\d.]+% slower on ", slower), slower.split("\n")[0]
    assert "**Why**: not profiled, because Nsight Compute sees no CPU kernel" in slower
    assert "kernelgate profile" not in slower.split("<details>")[0]
    [now] = re.findall(r"(?m)^\*\*Now:\*\* .*$", slower)
    [command] = re.findall(r"`(kernelgate [^`]+)`", now)
    edit(clone, source, WORK * 3, WORK)
    fixed = ends_with(0, *shlex.split(command)[1:]).out
    assert re.match(r"### \S+ Does not block: no change", fixed), fixed.split("\n")[0]


@pytest.mark.slow
def test_a_card_that_the_change_takes_away_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    """Also under another name: what the base measured nobody measures then."""
    card = ".ci/kernels/{}.py"
    repo = miniature.repository(tmp_path / "clone", miniature.SCALE_FILES)
    monkeypatch.chdir(repo)
    monkeypatch.setattr(local, "measured", lambda *_: run_record())
    (repo / card.format("scale")).rename(repo / card.format("scaled"))
    gone = "the base has a card scale, and the head has not, or not under this name: nothing of it was measured."
    assert gone in ends_with(0, "pr", "--base", "HEAD").out.replace("The base", "the base")
    (repo / card.format("scale")).write_text(SCALE_CARD)
    assert "the head has not" not in ends_with(0, "pr", "--base", "HEAD").out
    for name in ("scale", "scaled"):
        (repo / card.format(name)).unlink()
    assert "the base has scale in .ci/kernels, the head no card" in ends_with(2, "pr", "--base", "HEAD").err


CPU_CARD = SCALE_CARD.replace("cases = [", "cpu_cases = [")


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Of a repository whose working tree is as its one commit."""
    files = {"csrc/scale.cpp": SCALE, ".ci/kernels/scale.py": CPU_CARD}
    repo = miniature.repository(tmp_path / "clone", files)
    monkeypatch.setattr("kernelgate.bench.system.environment.describe", lambda *_: CPU)
    return partial(pytest_plugin.compare, repo, tmp_path / "out")


@pytest.mark.slow
def test_a_wrong_kernel_fails_the_test_and_the_same_one_passes_it(compare: Callable[..., None], tmp_path: Path) -> None:
    compare("HEAD")
    wrong = SCALE.replace("factor * static_cast", "1.5 * factor * static_cast")
    miniature.write(tmp_path / "clone", {"csrc/scale.cpp": wrong})
    with pytest.raises(pytest.fail.Exception, match="wrong result in"):
        compare("HEAD")


@pytest.mark.slow
def test_a_marked_test_is_compared_and_its_neighbour_is_not(tmp_path: Path) -> None:
    marked = '@pytest.mark.kernelgate("no-such")\ndef test_speed(tmp_path):\n    assert tmp_path.is_dir()\n'
    tests = f"import pytest\n{marked}def test_other():\n    pass\n"
    repo = miniature.repository(tmp_path / "clone", {"test_speed.py": tests})
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", "-q", "test_speed.py"],
        cwd=repo,
        capture_output=True,
        text=True,
    )
    assert "1 failed, 1 passed" in ran.stdout
    assert "no-such" in ran.stdout


@pytest.mark.usefixtures("no_torch")
def test_what_does_not_compile_or_is_not_there_fails_the_test_and_no_card_skips_it(
    compare: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(pytest.skip.Exception, match="holds no card"):
        compare("HEAD", cards=tmp_path / "none")
    with pytest.raises(pytest.fail.Exception, match="no-such"):
        compare("no-such")
    miniature.write(tmp_path / "clone", {"csrc/scale.cpp": "int broken = missing;\n"})
    with pytest.raises(pytest.fail.Exception, match="does not compile"):
        compare("HEAD")
