"""What lies in a pull request's checkout and would run if a tool looked for it there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernelgate.bench.kernel import cards
from kernelgate.bench.system import git

GIT = ("git", "-c", "user.email=author@example.org", "-c", "user.name=author")


@pytest.mark.parametrize("name", ["sitecustomize", "usercustomize", "torch", "json", "pydantic", "kernelgate"])
def test_a_module_in_the_checkout_stands_in_for_no_other(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')\n", encoding="utf-8")
    (tmp_path / cards.FOLDER).mkdir(parents=True)
    (tmp_path / cards.FOLDER / "one.py").write_text("no card\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    [mistake] = cards.read(Path(cards.FOLDER)).mistakes
    assert "SyntaxError" in str(mistake)


def test_a_filter_that_the_checkout_asks_for_is_not_run(tmp_path: Path) -> None:
    """A filter's command is in git's configuration, and no file of a commit is."""
    repo = tmp_path / "repo"
    (repo / "csrc").mkdir(parents=True)
    (repo / "csrc" / "kernel.cu").write_text("as it is\n", encoding="utf-8")
    (repo / ".gitattributes").write_text("* filter=evil\n", encoding="utf-8")
    for name in (".gitconfig", ".gitmodules"):
        (repo / name).write_text(f'[filter "evil"]\n\tsmudge = touch {tmp_path}/ran\n', encoding="utf-8")
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", "one")):
        subprocess.run([*GIT, *words], cwd=repo, check=True)
    with git.worktree(repo, git.resolve(repo, "HEAD"), "csrc") as tree:
        assert (tree / "csrc" / "kernel.cu").read_text("utf-8") == "as it is\n"
    assert not (tmp_path / "ran").exists()
