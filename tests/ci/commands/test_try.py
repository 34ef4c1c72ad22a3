"""`kernelgate try` on repositories that know nothing of kernelgate."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.kernel import commit as commits
from kernelgate.bench.kernel.commit import HowToBuild
from kernelgate.bench.record import RunRecord
from kernelgate.ci.commands import cli
from kernelgate.ci.judge import cards as judge_cards
from kernelgate.ci.pipeline import local
from tests.bench.machine import CPU
from tests.called import EndsWith
from tests.miniature import SCALE, SCALE_CARD, commit, git, repository

HEADER = '#include "../shared/factor.h"\n'
CPU_CARD = SCALE_CARD.replace("cases = [", "cpu_cases = [")
WRONG = SCALE.replace("factor * static_cast", "1.5 * factor * static_cast")
BROKEN = SCALE.replace("for (", "fro (")
AGAIN = SCALE.replace("  for (", "  for (int again = 0; again < 3; ++again)\n  for (")


@pytest.fixture(autouse=True)
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A detached clone without .ci and .gitignore, of which a file cannot be read; the shell is in a folder of it. Its
    commits: the first, one that touches no source, wrong, broken."""
    files = {"csrc/scale.cpp": HEADER + SCALE, "shared/factor.h": "#pragma once\n", "data/large": "x", "docs/a": "a"}
    repo = repository(tmp_path / "clone", files)
    commit(repo, {"docs/a": "b"})
    for source in (WRONG, BROKEN):
        commit(repo, {"csrc/scale.cpp": HEADER + source})
    git(repo, "checkout", "--quiet", "--detach", "HEAD")
    blob = git(repo, "rev-parse", "HEAD:data/large")
    (repo / ".git/objects" / blob[:2] / blob[2:]).unlink()
    monkeypatch.chdir(repo / "docs")
    monkeypatch.setattr("kernelgate.bench.system.environment.describe", lambda *_: CPU)
    return repo


@pytest.fixture
def cards(tmp_path: Path) -> str:
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards/scale.py").write_text(CPU_CARD, encoding="utf-8")
    return str(tmp_path / "cards")


@pytest.mark.slow
def test_any_two_commits_of_a_clone_are_compared_and_nothing_in_it_changes(
    clone: Path, cards: str, tmp_path: Path, ends_with: EndsWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELGATE_CACHE", str(tmp_path / "cache"))
    before = {path: path.read_bytes() for path in clone.rglob("*") if path.is_file()}
    same = ends_with(2, "try", "HEAD~3", "HEAD~2", "--cards", cards)
    assert "base and head compile to the same library" in same.out
    first, second, third = (git(clone, "rev-parse", f"HEAD~{back}") for back in (3, 2, 1))
    place = tmp_path / "cache/tried" / f"clone-{first[:9]}-{second[:9]}"
    written = ", ".join(str(place / name) for name in ("run.json", "comment.md", "page.html"))
    assert same.err.splitlines()[-1] == f"Written: {written}"
    wrong = ends_with(1, "try", "HEAD~3", "HEAD~1", "--cards", cards).out
    assert wrong.startswith("### 🛑 Blocks: wrong result in ")
    made = record.read(tmp_path / "cache/tried" / f"clone-{first[:9]}-{third[:9]}" / "run.json")
    assert made.cases == (), "what is wrong is not timed"
    [repeat] = re.findall(r"\*\*Now:\*\* repeat it with `kernelgate ([^`]+)`", wrong)
    ends_with(1, *shlex.split(repeat))  # the one command that it names finds it again
    assert f"kernelgate try {first[:12]} {third[:12]} --cards {cards}" in wrong
    assert ends_with(1, "try", "HEAD~3", "HEAD", "--cards", cards).out.startswith("### 🔧 Blocks: does not compile")
    assert {path: path.read_bytes() for path in clone.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_only_what_the_change_affects_is_compiled(
    clone: Path, cards: str, capsys: pytest.CaptureFixture[str], ends_with: EndsWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a folder with cards for a whole project most have nothing to do with a change."""
    for name in ("other", "absent"):
        text = CPU_CARD.replace("class Scale(", f"class {name.title()}(").replace("csrc/scale*", f"csrc/{name}.cpp")
        Path(cards, f"{name}.py").write_text(text, encoding="utf-8")
    package = re.sub(r"build = .*", 'build = Package("kit.later")', CPU_CARD.replace("class Scale(", "class Module("))
    Path(cards, "module.py").write_text(package.replace("import Extension", "import Package"), encoding="utf-8")
    files = {"csrc/other.cpp": HEADER + SCALE, "csrc/scale.cpp": HEADER + SCALE, "kit/__init__.py": ""}
    base = commit(clone, files)
    head = commit(clone, {"csrc/scale.cpp": HEADER + BROKEN})
    shared = commit(clone, {"csrc/scale.cpp": HEADER + SCALE, "shared/factor.h": "#pragma once\n// another\n"})
    names, same = local.affected(clone, base, head, Path(cards))
    assert names == {"scale"}
    assert judge_cards.same_library(RunRecord(builds=same)) == {"other"}
    assert [(one.side, one.sha) for one in same] == [("base", base), ("head", head)], "as the comment names them"
    said = capsys.readouterr().err
    assert "not affected by the change: other" in said
    assert "left out, for neither commit has its sources: absent, module" in said
    both = local.affected(clone, base, shared, Path(cards))
    assert both == ({"scale", "other"}, ()), "the header that both include is changed"
    assert local.affected(clone, base, base, Path(cards))[0] == {"other"}, "a record is about one card at least"
    built: list[HowToBuild] = []
    build = commits.build_commit
    monkeypatch.setattr(commits, "build_commit", lambda repo, ref, how: built.append(how) or build(repo, ref, how))
    out = ends_with(1, "try", base, head, "--cards", cards).out
    assert out.startswith("### 🔧 Blocks: does not compile")
    assert f"`{head[:7]}` vs `{base[:7]}`" in out
    assert [how.only for how in built] == [{"scale"}] * 2
    again = commit(clone, {"csrc/scale.cpp": HEADER + BROKEN + "// the same mistake\n"})
    said = ends_with(3, "try", head, again, "--cards", cards)
    assert "neither base nor head compiles here, so nothing is compared: csrc/scale.cpp:" in said.err
    assert said.out == ""


@pytest.mark.slow
def test_a_commit_that_changes_no_machine_code_is_not_run(
    clone: Path, cards: str, tmp_path: Path, ends_with: EndsWith
) -> None:
    git(clone, "checkout", "--quiet", "HEAD~3")
    commit(clone, {"csrc/scale.cpp": f"{HEADER}{SCALE}// moves no line that the code names\n"})
    out = tmp_path / "out"
    said = ends_with(2, "try", "HEAD~1", "HEAD", "--cards", cards, "--out", out)
    assert "same machine code on both sides, not run: every case." in said.out
    made = record.read(out / "run.json")
    assert (made.processes, made.checks) == ((), ())
    commit(clone, {"csrc/scale.cpp": HEADER + AGAIN})
    cli.run(["try", "HEAD~1", "HEAD", "--cards", cards, "--out", str(out)])
    assert "not run" not in (out / "comment.md").read_text("utf-8")
    assert record.read(out / "run.json").processes


@pytest.mark.usefixtures("no_torch")
def test_a_card_that_cannot_be_used_is_no_fault_of_the_head(cards: str, ends_with: EndsWith) -> None:
    card = Path(cards, "scale.py")
    card.write_text(CPU_CARD.replace("csrc/scale*", "csrc/scalar*"), encoding="utf-8")
    said = ends_with(64, "try", "HEAD~3", "HEAD~2", "--cards", cards)
    assert "has no sources at csrc/scalar*" in said.err
    assert said.out == ""
    card.unlink()
    assert f"{cards} holds no card" in ends_with(2, "try", "HEAD~3", "HEAD~2", "--cards", cards).err
    assert "has no card in .ci/kernels/" in ends_with(2, "try", "HEAD~3", "HEAD~2").err


@pytest.mark.slow
def test_a_shallow_clone_needs_both_commits_and_nothing_else(
    cards: str, tmp_path: Path, ends_with: EndsWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = repository(tmp_path / "whole", {"csrc/scale.cpp": SCALE})
    first = git(whole, "rev-parse", "HEAD")
    commit(whole, {"a": "1"})
    commit(whole, {"a": "2"})
    git(tmp_path, "clone", "--quiet", "--depth=2", f"file://{whole}", "shallow")
    monkeypatch.chdir(tmp_path / "shallow")
    assert "compile to the same library" in ends_with(2, "try", "HEAD~1", "HEAD", "--cards", cards).out
    said = ends_with(3, "try", first, "HEAD", "--cards", cards).err
    assert f"is a shallow clone without '{first}': run `git fetch --unshallow`" in said


@pytest.mark.slow
def test_the_other_commands_take_the_cards_of_a_folder_too(clone: Path, cards: str, ends_with: EndsWith) -> None:
    assert f"scale (Scale), {cards}/scale.py" in ends_with(0, "cards", "--list", "--cards", cards).out
    ends_with(0, "build", "--ref", "HEAD~3", "--cards", cards)
    ends_with(1, "fuzz", "--ref", "HEAD~1", "--cards", cards)
    broken = git(clone, "rev-parse", "HEAD")
    assert broken[:9] in ends_with(0, "bisect", "--build", "HEAD~3", "HEAD", "--cards", cards).out
