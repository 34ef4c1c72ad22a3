"""The scripts that Slurm gets: run by bash with stand-ins for Slurm and for the measurement, then by a real cluster."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.record import timed_cases
from kernelgate.ci.judge.case import Outcome
from kernelgate.ci.pipeline import slurm
from kernelgate.ci.pipeline.slurm import Submission
from tests import miniature, slurm_cluster
from tests.called import EndsWith
from tests.processes import marked, program, wait_for
from tests.shards import Checkout, told
from tests.slurm_cluster import Cluster

STAND_IN = """\
# Of kernelgate: notes how it was called, and behaves as the file `mode` says.
here=$(dirname "$0")
echo "$*" >>"$here/calls"
[ "$1" != merge ] && [ "$1" != report ] && [ "$1" != compare ] && [ "$1" != bench ] && exit 0
while [ $# -gt 0 ]; do [ "$1" = --output ] && output=$2; [ "$1" = compare ] && exit "$(cat "$here/code")"; shift; done
echo "$(cat "$here/mode")" >>"$output"
case $(cat "$here/mode") in
  waits) trap 'exit 75' TERM; touch "$here/begun"; sleep 60 & wait ;;
  killed) kill -KILL $$ ;;
  fails) exit 1 ;;
esac
"""


@dataclass(frozen=True)
class Scripts:
    folder: Path
    asked: Submission

    def mode(self, mode: str) -> None:
        (self.folder / "mode").write_text(mode)

    def start(self, script: str, shard: int = 2, attempt: int = 0) -> subprocess.Popen[str]:
        variables = {"SLURM_ARRAY_TASK_ID": f"{shard}", "SLURM_JOB_ID": "77", "SLURM_RESTART_COUNT": f"{attempt}"}
        environment = {**os.environ, **variables, "PATH": f"{self.folder}:{os.environ['PATH']}"}
        words = ["bash", "-c", script]
        return subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment, cwd=self.folder)

    def run(self, shard: int = 2, attempt: int = 0) -> tuple[int, str]:
        with self.start(self.asked.array_script(), shard, attempt) as bash:
            _, said = bash.communicate(timeout=60)
        return bash.returncode, said

    def calls(self, verb: str = "bench") -> list[str]:
        return [line for line in self._lines("calls") if line.startswith(verb)]

    @property
    def requeued(self) -> list[str]:
        return self._lines("scontrol-calls")

    def _lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    output = tmp_path / "out put"
    output.mkdir()
    program(tmp_path / "kernelgate", STAND_IN, "/bin/bash")
    program(tmp_path / "scontrol", f'echo "$*" >>"{tmp_path}/scontrol-calls"')
    (tmp_path / "code").write_text("0")
    made = Scripts(tmp_path, Submission((str(tmp_path / "kernelgate"),), tmp_path, output, "a" * 40, "b" * 40, 7, 3))
    made.mode("done")
    return made


@pytest.mark.parametrize("gpu", [None, "h100"])
@pytest.mark.parametrize("which", ["array_script", "merge_script"])
def test_bash_and_shellcheck_find_nothing(scripts: Scripts, which: str, gpu: str | None) -> None:
    script = getattr(replace(scripts.asked, gpu=gpu, partition="p q", times=Path("it's.json")), which)()
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed: apt-get install shellcheck")
    done = subprocess.run(["shellcheck", "-"], input=script, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_what_is_asked_of_slurm(scripts: Scripts) -> None:
    script = replace(scripts.asked, gpu="h100", partition="gpus").array_script()
    head = [line for line in script.splitlines() if line.startswith("#SBATCH ")]
    for words in ("array=1-3", "requeue", "signal=B:TERM@30", "gres=gpu:h100:1", "partition=gpus"):
        assert f"#SBATCH --{words}" in head
    assert "gres" not in scripts.asked.array_script()


def test_a_shard_is_measured_and_only_the_first_fuzzes(scripts: Scripts) -> None:
    assert scripts.run() == (0, "")
    [call] = scripts.calls()
    assert "--seed 7 --shard 2/3 --resume" in call
    assert (scripts.asked.output / "shard-2.json").read_text() == "done\n"
    assert scripts.calls("fuzz") == []
    assert scripts.run()[0] == 0
    assert len(scripts.calls()) == 1, "a node that died after the end repeats nothing"
    assert scripts.run(shard=1)[0] == 0
    assert len(scripts.calls("fuzz")) == 1
    assert scripts.calls("sanitize") == [], "which takes a GPU"


def test_cards_and_python_go_to_each_verb_that_runs_kernels(scripts: Scripts) -> None:
    named = replace(scripts.asked, gpu="h100", from_cards=Path("/all/my cards"), python=Path("/all/bin/python"))
    assert Scripts(scripts.folder, named).run(shard=1) == (0, "")
    for verb in ("fuzz", "bench", "sanitize", "profile"):
        [call] = scripts.calls(verb)
        assert "--cards /all/my cards --python /all/bin/python" in call, verb


def test_a_preempted_shard_is_requeued_and_goes_on_from_its_own_record(scripts: Scripts) -> None:
    scripts.mode("waits")
    with scripts.start(scripts.asked.array_script()) as bash:
        wait_for((scripts.folder / "begun").exists, what="bench was not called")
        bash.send_signal(signal.SIGTERM)
        assert bash.wait(30) == 75
    assert scripts.requeued == ["requeue 77"]
    assert not (scripts.asked.output / "shard-2.json").exists()
    scripts.mode("done")
    assert scripts.run(attempt=1)[0] == 0
    assert (scripts.asked.output / "shard-2.json").read_text() == "waits\ndone\n"
    assert (scripts.asked.output / "shard-2-attempt-0.json").read_text() == "waits\n", "an attempt writes to its own"


def test_what_is_killed_is_tried_again_and_not_for_ever(scripts: Scripts) -> None:
    scripts.mode("killed")
    assert scripts.run()[0] == 137
    assert scripts.requeued == ["requeue 77"]
    code, said = scripts.run(attempt=slurm.MAX_RESTARTS)
    assert code == 137
    assert "shard 2 was cut off 10 times and is given up; what it has is merged" in said
    assert len(scripts.requeued) == 1
    scripts.mode("fails")
    assert scripts.run(shard=3)[0] == 1, "a kernel that fails would fail again"
    assert len(scripts.requeued) == 1


@pytest.mark.parametrize(("code", "ended"), [(0, 0), (1, 1), (2, 0), (3, 3)])
def test_merging_takes_what_there_is_and_ends_as_the_verdict(scripts: Scripts, code: int, ended: int) -> None:
    output = scripts.asked.output
    for name in ("shard-1.json", "shard-3-attempt-0.json", "shard-3-attempt-2.json"):
        (output / name).touch()
    (scripts.folder / "code").write_text(str(code))
    with scripts.start(scripts.asked.merge_script()) as bash:
        assert bash.wait(30) == ended
    [call] = scripts.calls("merge")
    assert call == f"merge {output}/shard-1.json {output}/shard-3-attempt-2.json --output {output}/run.json"
    assert scripts.calls("report")


# The verb


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = miniature.repository(tmp_path / "repository", {"a": "1"})
    miniature.commit(made, {"a": "2"})
    monkeypatch.chdir(made)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return made


SUBMIT = ["submit", "--slurm", "HEAD~1", "HEAD", "--shards", "4", "--seed", "1"]


@pytest.mark.usefixtures("repository")
def test_what_a_dry_run_prints_is_submitted_the_second_job_after_the_first(tmp_path: Path, ends_with: EndsWith) -> None:
    assert ends_with(0, *SUBMIT, "--dry-run", "-o", tmp_path / "out").out.count("#!/bin/bash") == 2
    assert not any((tmp_path / "out").rglob("*"))  # the folder itself was tried, as every output is
    program(tmp_path / "sbatch", f'echo "$*" >>{tmp_path}/asked\necho "$(wc -l <{tmp_path}/asked)1;all"')
    answer = json.loads(ends_with(0, *SUBMIT, "--json", "-o", tmp_path / "out").out)
    assert (answer["array"], answer["merge"]) == (11, 21)
    out = tmp_path / "out"
    assert (tmp_path / "asked").read_text().splitlines() == [
        f"--parsable {out}/shards.sh",
        f"--parsable --dependency=afterany:11 {out}/merge.sh",
    ]
    said = ends_with(64, *SUBMIT, "-o", out).err
    assert f"{out} holds an earlier submission: name a new folder with --output" in said


@pytest.mark.usefixtures("repository")
def test_what_slurm_refuses_is_said_in_its_words_and_that_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    program(tmp_path / "sbatch", "case $* in *afterany*) echo 'sbatch: error: no' >&2; exit 1 ;; esac; echo 5")
    said = ends_with(3, *SUBMIT, "-o", tmp_path / "out").err
    assert "Slurm refused" in said
    assert "sbatch: error: no; job 5 measures all the same: `scancel 5` ends it" in said
    (tmp_path / "sbatch").unlink()
    for tool in ("git", "bash"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or tool)
    monkeypatch.setenv("PATH", str(tmp_path))
    said = ends_with(3, *SUBMIT, "-o", tmp_path / "other").err
    assert "sbatch is not installed here: submit from a machine of the cluster" in said


# A real cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if why := slurm_cluster.lacking():
        pytest.skip(why)
    with slurm_cluster.started(tmp_path_factory.mktemp("slurm")) as made:
        yield made


@pytest.fixture(scope="module")
def checkout(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    made = Checkout(tmp_path_factory.mktemp("cluster"))
    made.environment = {**cluster.environment, **made.environment, "PATH": cluster.environment["PATH"]}
    return made


@pytest.mark.nightly
@pytest.mark.timeout(1500)
def test_nodes_that_are_killed_one_after_the_other_lose_nothing(
    cluster: Cluster, checkout: Checkout, tmp_path: Path
) -> None:
    """Six, each night at other moments: while they compile, fuzz, start, time or write."""
    output, moments = tmp_path / "out", random.Random(date.today().toordinal())
    words = ("--shards", "4", "--seed", "3", "-o", str(output), "--json")
    answer = json.loads(checkout.run("submit", "--slurm", checkout.base, checkout.head, *words)[0])
    array, kept = answer["array"], dict[int, tuple[record.Process, ...]]()
    for _ in range(6):
        time.sleep(moments.uniform(3, 40))
        listed = cluster.run("squeue", "--noheader", "--states=RUNNING", f"--jobs={array}", "--format=%N").split()
        if not listed:
            continue  # between two attempts, or all is done
        for file in output.glob("shard-?-attempt-*.json"):
            kept[int(file.name[6])] = max(kept.get(int(file.name[6]), ()), record.read(file).processes, key=len)
        _kill_node(cluster, name := moments.choice(listed))
        time.sleep(12)  # so that Slurm has given the node up
        cluster.start_node(name)
    _lost_nothing(cluster, array, answer["merge"], output)
    for shard, processes in kept.items():
        assert record.read(output / f"shard-{shard}.json").processes[: len(processes)] == processes


def _lost_nothing(cluster: Cluster, array: int, merge: int, output: Path) -> None:
    cluster.wait_for(array, {"COMPLETED"}, 900)
    cluster.wait_for(merge, {"FAILED"})  # with 1: the head is slower
    made = record.read(output / "run.json")
    assert (made.run.ended, len(made.cases)) == ("complete", 4)
    for case in timed_cases(made):
        assert len(case.processes) >= 2
        assert len({one.process.seed for one in case.processes}) == len(case.processes), "no process is there twice"
    verdict, certain = told(made)
    assert (verdict, set(certain.values())) == (Outcome.REGRESSED, {Outcome.REGRESSED})
    assert "slower" in (output / "comment.md").read_text()


def _kill_node(cluster: Cluster, name: str) -> None:
    """All that runs on it: the daemon, the step's, and the jobs' processes."""
    theirs = set(marked(f"SLURMD_NODENAME={name}"))
    parents = {int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in theirs}
    steps = {pid for pid in parents if pid > 1 and b"slurmstepd" in Path(f"/proc/{pid}/cmdline").read_bytes()}
    cluster.slurmds[name].kill()
    cluster.slurmds[name].wait()
    for pid in (*steps, *theirs):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
