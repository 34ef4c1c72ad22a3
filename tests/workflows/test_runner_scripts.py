"""The scripts of a GPU runner: shellcheck over all, and the hooks run against a made-up nvidia-smi."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import ROOT, workflows

SCRIPTS = ROOT / ".ci/runner"
BIN = Path(sys.executable).parent


def test_shellcheck_finds_nothing() -> None:
    done = subprocess.run(
        [BIN / "shellcheck", *sorted(SCRIPTS.glob("*.sh"))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def hook(name: str, folder: Path, smi: str, **told: str) -> subprocess.CompletedProcess[str]:
    """Runs a hook with a `nvidia-smi` whose body is `smi`, and the variables that the runner gives."""
    program = folder / "bin/nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{smi}\n", "utf-8")
    program.chmod(0o755)
    variables = {"PATH": f"{program.parent}:{os.environ['PATH']}", **told}
    return subprocess.run([SCRIPTS / name], env=variables, capture_output=True, text=True, check=False)


QUIET = 'case "$1" in *compute-apps*) ;; *) echo "NVIDIA L4, 580.95.05, 41, 2040 MHz, 30 W";; esac'
SERVED = {"KERNELGATE_REPOSITORIES": "my-org/kernels my-org/more", "GITHUB_REPOSITORY": "my-org/more"}


def test_a_job_of_a_served_repository_starts_on_an_idle_gpu(tmp_path: Path) -> None:
    done = hook("job-started.sh", tmp_path, QUIET, **SERVED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NVIDIA L4" in done.stdout


@pytest.mark.parametrize("repository", ["stranger/kernels", "my-org/kernel", "my-org", ""])
def test_a_job_of_another_repository_is_refused(repository: str, tmp_path: Path) -> None:
    done = hook("job-started.sh", tmp_path, QUIET, **{**SERVED, "GITHUB_REPOSITORY": repository})
    assert done.returncode == 1
    assert "not one that it serves" in done.stdout


def test_a_job_is_refused_while_the_gpu_is_in_use(tmp_path: Path) -> None:
    done = hook("job-started.sh", tmp_path, "echo 4711; echo 4712", **SERVED)
    assert done.returncode == 1
    assert "4711 4712" in done.stdout


def test_a_job_is_refused_where_the_driver_does_not_answer(tmp_path: Path) -> None:
    done = hook("job-started.sh", tmp_path, "exit 9", **SERVED)
    assert done.returncode == 1
    assert "does not answer" in done.stdout


def test_what_a_job_left_on_the_gpu_ends_and_its_workspace_is_emptied(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "deep/.hidden").mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"]) as left:
        done = hook("job-completed.sh", tmp_path, f"echo {left.pid}", GITHUB_WORKSPACE=str(workspace))
        assert done.returncode == 0, done.stderr
        assert left.wait(timeout=10) == -9
    assert list(workspace.iterdir()) == []


def test_the_cleaning_hook_works_without_a_gpu_or_a_workspace(tmp_path: Path) -> None:
    assert hook("job-completed.sh", tmp_path, "exit 9").returncode == 0


def test_the_runner_registers_with_the_labels_that_measure_asks_for() -> None:
    script = (SCRIPTS / "serve.sh").read_text("utf-8")
    [labels] = re.findall(r'"labels\\?": \[(.+?)\]', script.replace('\\"', '"'))
    asked = workflows()["measure"].jobs["measure"]["runs-on"]
    given = [label.strip().strip('"') for label in labels.split(",")]
    assert given == [*asked[:-1], "$GPU_LABEL"]
