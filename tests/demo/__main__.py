"""Five pull requests to the attention's CPU kernel, each built, fuzzed, timed and judged on this machine, and reported
to a GitHub that lives in this process: `make demo`. .ci/proposals.toml has them. What their authors would see ends in
one page. An argument is a page whose table of promises is filled: `python -m tests.demo docs/proof.md`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path

from kernelgate.bench.build import archs
from kernelgate.bench.core import files
from kernelgate.ci.github import actions, client, fetch, prove, publish
from kernelgate.ci.github.prove import Change
from kernelgate.ci.policy import policy
from tests.demo import page
from tests.demo.page import Shown
from tests.fakes.github_server import FakeGitHub, Pull
from tests.miniature import commit, git, repository

ROOT = Path(__file__).parents[2]
FILE = ROOT / "build" / "demo" / "index.html"
LOG = FILE.with_name("log.txt")
"""What the commands print."""
TAKEN = ("csrc/attention", ".ci/kernels")
"""Without what needs a CUDA compiler."""
POLICY = """\
[template]
sections = "ignore"
[processes]
limit = 5
"""
"""Nothing is asked of a description, and 5 processes fit into the time of a demo."""
EVERY = prove.read(ROOT / prove.FILE)
FEWER = (Change(file=".ci/kernels/attention.py", old='cpu_cases = [case(512, 1, 8, "fp32"), ', new="cpu_cases = ["),)
"""The causal case, which the changes are about, so that it ends in time."""
LABEL = "cpu"


def main() -> None:
    begun = time.monotonic()
    FILE.parent.mkdir(parents=True, exist_ok=True)
    LOG.write_bytes(b"")
    with tempfile.TemporaryDirectory(prefix="kernelgate-demo-") as folder, FakeGitHub() as github:
        tree = Path(folder, "tree")
        base = _begin(tree)
        github.refs["heads/main"] = base
        shown = []
        for number, (name, proposal) in enumerate(EVERY.pulls.items(), 1):
            print(f"{number}/{len(EVERY.pulls)} {name}: {proposal.title}", flush=True)
            pull = _opened(github, tree, base, number, name)
            seen = _measured_and_reported(github, tree, pull, Path(folder, str(number)))
            check = _check(github, pull)
            print(f"    {check[1]} ({seen:.0f} s)", flush=True)
            shown.append(Shown(name, proposal, number, github.bodies(number), check, tuple(pull.labels), seen))
        bot = client.connect(actions.Step(github.environment), pause_s=0)
        told = [
            prove.verdict_of(bot, name, proposal, number, late=True)
            for number, (name, proposal) in enumerate(EVERY.pulls.items(), 1)
        ]
    made = {FILE: page.html(shown)}
    for table in map(Path, sys.argv[1:]):
        today = datetime.now(UTC).date().isoformat()
        made |= prove.table_files(table, "CPU", today, "this checkout", [one for one in told if one])
    for path, text in made.items():
        files.write(path, text)
    print(f"Written in {time.monotonic() - begun:.0f} s: {FILE}")


def apply(changes: Sequence[Change], tree: Path) -> None:
    old = {one.file: (tree / one.file).read_text(encoding="utf-8") for one in changes}
    for name, text in prove.changed(old, changes).items():
        (tree / name).write_text(text, encoding="utf-8")


def _begin(tree: Path) -> str:
    for name in TAKEN:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("*.cu"))
    (tree / ".ci" / "kernelgate.toml").write_text(POLICY, encoding="utf-8")
    apply((*EVERY.begin, *FEWER), tree)
    repository(tree, {})
    return git(tree, "rev-parse", "HEAD")


def _opened(github: FakeGitHub, tree: Path, base: str, number: int, name: str) -> Pull:
    proposal = EVERY.pulls[name]
    git(tree, "checkout", "--quiet", "-b", name, "main")
    apply(EVERY.changes(name), tree)
    head = commit(tree)
    changed = git(tree, "diff", "--name-only", base, head).splitlines()
    patches = [git(tree, "diff", base, head, "--", path).partition("\n@@")[2] for path in changed]
    listed = [{"filename": path, "patch": f"@@{text}"} for path, text in zip(changed, patches, strict=True)]
    git(tree, "checkout", "--quiet", "main")
    github.merge_bases[base, head] = base
    named = {"title": proposal.title, "body": proposal.body, "head_ref": name}
    return github.open_pull(number=number, head_sha=head, base_sha=base, files=listed, **named)


def _measured_and_reported(github: FakeGitHub, tree: Path, pull: Pull, out: Path) -> float:
    """Does what measure.yml and report.yml do, by the same verbs; the seconds that it took."""
    begun = time.monotonic()
    run = github.add_run(pull)
    of_run = {
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_REF": f"refs/pull/{pull.number}/merge",
        "GITHUB_RUN_ID": str(run["id"]),
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_REPOSITORY": github.repository,
        "KERNELGATE_FAILURE": str(out / "failure.json"),
    }
    out.mkdir()
    base, head, record = (str(out / name) for name in ("base", "head", "run.json"))
    sides = ("--base-library", base, "--head-library", head)
    build = [
        ("build", "--ref", sha, "--output", folder) for sha, folder in ((pull.base_sha, base), (pull.head_sha, head))
    ]
    steps = {  # base and head are built by two jobs at once
        "build": build,
        "fuzz": [("fuzz", "--library", head, "--base-library", base, "--output", record)],
        "bench": [("bench", *sides, "--fuzz", record, "--gpu", LABEL, "--output", record)],
    }
    ended: list[tuple[str, str]] = []
    for name, commands in steps.items():
        started = [_kernelgate(tree, of_run, words) for words in commands]
        codes = [one.wait() for one in started]
        ended.append((name, "failure" if any(codes) else "success"))
        if any(codes):
            break
    github.add_job(run, f"measure ({LABEL}) / measure", ended[-1][1], *ended)
    left = {name: (out / name).read_bytes() for name in ("run.json", "failure.json") if (out / name).exists()}
    github.add_artifact(run, f"kernelgate-record-{LABEL}", left)
    run["conclusion"] = ended[-1][1]

    # As report.yml, but for the plan, which a policy has of GPUs alone.
    variables = {**github.environment, "GITHUB_STEP_SUMMARY": str(out / "summary.md")}
    bot = client.connect(actions.Step(variables), pause_s=0)
    with LOG.open("a", encoding="utf-8") as log, redirect_stderr(log), redirect_stdout(log):
        fetch.fetch(bot, run["id"], out / "records")
        publish.post(bot, out / "records", policy.load(tree / policy.POLICY_FILE))
    return time.monotonic() - begun


def _kernelgate(tree: Path, variables: Mapping[str, str], words: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """One command in the default branch's checkout, on the CPU alone."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", archs.ARCH_LIST: "", **variables}
    command = [sys.executable, "-m", "kernelgate.ci.commands.cli", *words]
    with LOG.open("ab") as log:
        return subprocess.Popen(command, cwd=tree, env=environment, stdout=log, stderr=log)


def _check(github: FakeGitHub, pull: Pull) -> tuple[str, str]:
    [made] = [one for one in github.checks.values() if one["head_sha"] == pull.head_sha]
    return made["conclusion"], made["output"]["title"]


if __name__ == "__main__":
    main()
