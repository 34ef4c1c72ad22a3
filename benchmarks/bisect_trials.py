"""Whether `kernelgate bisect` finds the commit among 16 real ones: `python -m benchmarks.bisect_trials -o FOLDER`.

Each trial is a repository of its own with a card's sources and 16 commits. All change something harmless, so that their
libraries differ, and one makes the kernel about 1% slower. Needs a GPU of compute capability 9.0, and
TORCH_CUDA_ARCH_LIST=9.0a for the wgmma path. Records and answers go into the folder; those of
tests/data/bisect are of an H200, shortened, and tests/ci/bisect/test_real_commits.py replays them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click

from kernelgate.bench.system.progress import say

ROOT = Path(__file__).parents[1]
KERNELGATE = (sys.executable, "-m", "kernelgate.ci.commands.cli")
COMMITS = 16
WAIT = "  __syncthreads();\n\n  if (__shfl_sync"


@dataclass(frozen=True)
class SlowedCommit:
    """One commit of 16 slows the kernel of a card down."""

    name: str
    tree: Path
    parts: tuple[str, ...]
    """Of the tree, that the repository needs."""
    culprit: int
    file: str
    change: Mapping[str, str]
    """What the culprit replaces in its file; each stands there once."""
    numbered: str
    """The file that every commit changes harmlessly, …"""
    line: str
    """… by its number, at its end."""
    broken: int | None = None
    """A commit that does not compile."""


def _wgmma(culprit: int, broken: int | None = None) -> SlowedCommit:
    """Each block waits 700 cycles, of a kernel of 37 us."""
    waits = "  for (const long long begun = clock64(); clock64() - begun < 700;) {\n  }\n\n  if (__shfl_sync"
    return SlowedCommit(
        name=f"wgmma-{culprit:02d}",
        tree=ROOT,
        parts=(".ci/kernels", ".ci/kernelgate.toml", "csrc/attention"),
        culprit=culprit,
        file="csrc/attention/wgmma/kernel.cuh",
        change={WAIT: WAIT.replace("  if (__shfl_sync", waits)},
        numbered="csrc/attention/dispatch.cpp",
        line="\nint trial_number() {{ return {}; }}\n",
        broken=broken,
    )


TRIALS = (
    _wgmma(5),
    _wgmma(12, broken=7),
    SlowedCommit(  # 1% more blocks, which do the first ones' work again
        name="triton-10",
        tree=ROOT / "tests" / "repositories" / "swiglu",
        parts=(".ci/kernels", ".ci/kernelgate.toml", "my_kernels"),
        culprit=10,
        file="my_kernels/swiglu.py",
        change={
            "(triton.cdiv(elements, BLOCK),)": "(triton.cdiv(elements, BLOCK) * 101 // 100,)",
            "program = tl.program_id(0)": "program = (tl.program_id(0) % tl.cdiv(elements, block))",
        },
        numbered="my_kernels/swiglu.py",
        line="\nTRIAL_NUMBER = {}\n",
    ),
)


@click.command()
@click.option("--jobs", default=8, show_default=True, help="Builds at a time.")
@click.option("--gpu/--no-gpu", default=True, help="Without: make the commits, and stop.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("out/bisect-trials"), show_default=True)
def main(jobs: int, gpu: bool, output: Path) -> None:
    """Make the trials' repositories, build their commits, search each, and say whether it was right."""
    output.mkdir(parents=True, exist_ok=True)
    made = [(trial, *commits(trial, output / trial.name)) for trial in TRIALS]
    say(f"made {len(made)} repositories of {COMMITS} commits in {output}")
    if not gpu:
        return
    with ThreadPoolExecutor(jobs) as builds:
        list(builds.map(_build, [(repo, sha) for _, repo, shas in made for sha in shas]))
    for trial, repo, shas in made:
        say(f"{trial.name}: {_searched(trial, repo, shas, output)}")


def commits(trial: SlowedCommit, repo: Path) -> tuple[Path, tuple[str, ...]]:
    """A repository with the trial's commits, the oldest first."""
    for part in trial.parts:
        found = trial.tree / part if (trial.tree / part).exists() else ROOT / part
        copy = shutil.copytree if found.is_dir() else shutil.copy
        (repo / part).parent.mkdir(parents=True, exist_ok=True)
        copy(found, repo / part)
    _git(repo, "init", "--quiet")
    plain = (repo / trial.numbered).read_text(encoding="utf-8")
    shas = []
    for number in range(COMMITS):
        if number == trial.culprit:
            (repo / trial.numbered).write_text(plain, encoding="utf-8")
            _slow_down(repo / trial.file, trial.change)
            plain = (repo / trial.numbered).read_text(encoding="utf-8")
        broken = "does not compile\n" if number == trial.broken else ""
        (repo / trial.numbered).write_text(plain + trial.line.format(number) + broken, encoding="utf-8")
        _git(repo, "add", "--all")
        _git(repo, "commit", "--quiet", "--message", f"Change number {number}")
        shas.append(_git(repo, "rev-parse", "HEAD").strip())
    return repo.resolve(), tuple(shas)


def _slow_down(file: Path, change: Mapping[str, str]) -> None:
    text = file.read_text(encoding="utf-8")
    for old, new in change.items():
        if text.count(old) != 1:
            raise click.ClickException(f"{file}: {old!r} stands there {text.count(old)} times, and must once")
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def _build(commit: tuple[Path, str]) -> None:
    """Into the cache, so that the search finds it there. One that does not compile is the search's to say."""
    repo, sha = commit
    subprocess.run((*KERNELGATE, "build", "--ref", sha), cwd=repo, check=False, capture_output=True)


def _searched(trial: SlowedCommit, repo: Path, shas: tuple[str, ...], output: Path) -> str:
    """Whether the search was right."""
    file = (output / f"{trial.name}.json").resolve()
    words = (*KERNELGATE, "bisect", shas[0], shas[-1], "--seed", "1", "--json", "-o", str(file))
    done = subprocess.run(words, cwd=repo, check=False, stdout=subprocess.PIPE, text=True)
    (output / f"{trial.name}.answer.json").write_text(done.stdout, encoding="utf-8")
    if not done.stdout.strip():
        return f"ended with {done.returncode}, without an answer"
    said = json.loads(done.stdout)
    right = "right" if said["culprits"] == [shas[trial.culprit]] else f"WRONG: it is {shas[trial.culprit]}"
    low, high = said["interval_pct"]
    return f"{right}, {said['change_pct']:+.2f}% ({low:+.2f} to {high:+.2f}%), {said['processes']} processes"


def _git(repo: Path, *words: str) -> str:
    who = ("-c", "user.name=kernelgate", "-c", "user.email=kernelgate@localhost", "-c", "commit.gpgsign=false")
    return subprocess.run(("git", *who, *words), cwd=repo, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
