"""A release: a commit beside the branch, with the tags that PyPI and other repositories' workflows follow."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.miniature import git
from tests.workflows.documents import ROOT

CALL = re.compile(r"uses: kernelgate/kernelgate/\.github/workflows/[\w-]+\.yml@(\S+)")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a release reads of the project, committed."""
    shutil.copytree(ROOT / ".github/workflows", tmp_path / ".github/workflows")
    for name in ("CHANGELOG.md", ".ci/release"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy2(ROOT / name, tmp_path / name)
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    commit(tmp_path)
    return tmp_path


def commit(checkout: Path) -> None:
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "-m", "A change")


def release(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([checkout / ".ci/release", *words], capture_output=True, text=True, check=False)


def date_the_entry(checkout: Path) -> None:
    entries = (checkout / "CHANGELOG.md").read_text("utf-8")
    entries = re.sub(r"(?m)^## \d.*", "## 0.2.0, 2026-12-01", entries, count=1)
    (checkout / "CHANGELOG.md").write_text(entries, "utf-8")


def test_what_others_call_by_a_tag_calls_nothing_that_came_later(checkout: Path) -> None:
    date_the_entry(checkout)
    commit(checkout)
    before = git(checkout, "rev-parse", "main")
    done = release(checkout, "0.2.0")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("git push origin v0.2.0 && git push --force origin v0\n")
    assert git(checkout, "rev-parse", "main", "HEAD").split() == [before, before]
    assert git(checkout, "rev-parse", "v0^") == before
    assert git(checkout, "rev-parse", "v0") == git(checkout, "rev-parse", "v0.2.0")
    called = CALL.findall(git(checkout, "grep", "uses: kernelgate/", "v0"))
    assert len(called) == len(CALL.findall(git(checkout, "grep", "uses: kernelgate/", "main"))) > 0
    assert set(called) == {"v0"}


def test_nothing_is_released_unwritten_uncommitted_or_twice(checkout: Path) -> None:
    assert "has no entry such as: ## 0.2.0, 20" in release(checkout, "0.2.0").stderr
    date_the_entry(checkout)
    assert "commit or stash your changes first" in release(checkout, "0.2.0").stderr
    commit(checkout)
    assert release(checkout, "0.2.0").returncode == 0
    assert release(checkout, "0.2.0").stderr == "v0.2.0 is released already\n"
    assert "such as 0.1.0" in release(checkout).stderr
    assert git(checkout, "status", "--porcelain") == ""
