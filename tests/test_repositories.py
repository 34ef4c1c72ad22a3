"""Repositories that are not ours, as their owners use kernelgate: each has a card and a kernel, and nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import miniature

ROOT = Path(__file__).parent.parent
REPOSITORIES = ROOT / "tests" / "repositories"
EXTENSIONS = ("int8_gemm", "rmsnorm")
TARGETS = "8.0;8.9;9.0"


def kernelgate(folder: Path, *words: str, targets: str = "") -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as a user types it."""
    command = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from kernelgate.ci.commands.cli import main; main()"
    home = folder.parent.parent  # one cache for all tests
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(home)}
    if targets:
        environment["TORCH_CUDA_ARCH_LIST"] = targets
    return subprocess.run(
        [sys.executable, "-c", command, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def repository(name: str, folder: Path) -> Path:
    """A clone of the repository on a branch that has changed nothing yet."""
    shutil.copytree(REPOSITORIES / name, folder)
    miniature.repository(folder, {})
    miniature.git(folder, "checkout", "--quiet", "-b", "change")
    return folder


def comment(folder: Path) -> str:
    return (folder / "out" / "comment.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_triton_kernel_is_compiled_for_three_targets_and_said_not_to_have_been_run(tmp_path: Path) -> None:
    """On a machine without a GPU; the facts are the compiler's, for each target."""
    folder = repository("swiglu", tmp_path / "swiglu")
    source = folder / "my_kernels" / "swiglu.py"
    source.write_text(source.read_text(encoding="utf-8") + "WORDS = 1\n", encoding="utf-8")
    done = kernelgate(folder, "pr", targets=TARGETS)
    assert done.returncode == 0, done.stderr
    compiled = "compiled for `sm_80, sm_89, sm_90`, and not run"
    why = "no card has cases for a machine without a GPU"
    assert comment(folder).splitlines()[0] == f"### ➖ Does not block: not measured: {compiled}: {why}"
    for target in ("sm_80", "sm_89", "sm_90"):
        assert re.search(rf"\| `_swiglu` \| `{target}` \| \d+ \| 0 B \|", comment(folder))


@pytest.mark.slow
@pytest.mark.parametrize("name", EXTENSIONS)
def test_a_card_is_right(name: str, tmp_path: Path) -> None:
    done = kernelgate(repository(name, tmp_path / name), "cards")
    assert (done.returncode, "right: operators fit call(); call() and oracle() agree" in done.stdout) == (0, True), done


def test_the_documented_card_is_that_of_the_repository() -> None:
    page = (ROOT / "docs" / "cards.md").read_text(encoding="utf-8")
    card = (REPOSITORIES / "rmsnorm/.ci/kernels/rmsnorm.py").read_text(encoding="utf-8")
    assert f"```python\n{card.strip()}\n```" in page


@pytest.mark.slow
def test_the_first_extension_works_as_it_stands(tmp_path: Path) -> None:
    """Copied as docs/cards.md says, before anything is committed."""
    folder = tmp_path / "repository"
    shutil.copytree(REPOSITORIES / "scale", folder)
    done = kernelgate(folder, "cards")
    assert (done.returncode, "right:" in done.stdout) == (0, True), done
    built = kernelgate(folder, "build", "-o", str(tmp_path / "library"), targets=TARGETS)
    assert built.returncode == 0, built.stderr
    manifest = (tmp_path / "library" / "scale" / "library.json").read_text(encoding="utf-8")
    assert all(target in manifest for target in ('"sm_80"', '"sm_89"', '"sm_90"', "scale_kernel"))
