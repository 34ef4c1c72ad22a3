"""A Slurm cluster of two nodes on this machine, with a munged, a slurmctld and two slurmd of its own."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.processes import wait_for

NODES = ("n1", "n2")
NEEDED = ("slurmctld", "slurmd", "munged", "sbatch")
CONFIG = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
SlurmctldTimeout=10
KillWait=5
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def lacking() -> str:
    """Why there is no cluster here; empty where there can be one."""
    path = os.environ["PATH"] + os.pathsep + "/usr/sbin"
    missing = [name for name in NEEDED if shutil.which(name, path=path) is None]
    return f"{', '.join(missing)} not installed: apt-get install slurm-wlm munge" if missing else ""


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@dataclass
class Cluster:
    folder: Path
    environment: Mapping[str, str]
    slurmds: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def run(self, *words: str) -> str:
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def states(self, job: int) -> dict[str, str]:
        """Of the job, or of each task of an array: "4_1" is RUNNING."""
        listed = self.run("squeue", "--noheader", "--array", "--states=all", f"--jobs={job}", "--format=%i %T")
        return dict(line.split() for line in listed.splitlines() if line)

    def start_node(self, name: str) -> None:
        command = ["slurmd", "-D", "-N", name, "-f", str(self.folder / "slurm.conf")]
        self.slurmds[name] = subprocess.Popen(
            command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def wait_for(self, job: int, states: set[str], limit_s: float = 400.0) -> None:
        deadline = time.monotonic() + limit_s
        while not ((now := self.states(job)) and set(now.values()) <= states):
            assert time.monotonic() < deadline, f"job {job}: {now}"
            time.sleep(0.5)


@contextmanager
def started(folder: Path) -> Iterator[Cluster]:
    """The cluster, once both nodes are idle. Nothing of it survives the block."""
    (folder / "state").mkdir()
    host, user = socket.gethostname().partition(".")[0], getpass.getuser()
    nodes = "\n".join(
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={_free_port()} CPUs=1" for name in NODES
    )
    filled = CONFIG.format(folder=folder, host=host, user=user, port=_free_port(), nodes=nodes)
    (folder / "slurm.conf").write_text(filled, encoding="utf-8")
    path = os.environ["PATH"] + os.pathsep + "/usr/sbin"
    environment = {**os.environ, "PATH": path, "SLURM_CONF": str(folder / "slurm.conf")}
    key = folder / "munge.key"
    key.write_bytes(b"only for tests, and long enough for munged")
    key.chmod(0o600)
    with ExitStack() as stack:

        def start(*words: str) -> None:
            silent = subprocess.DEVNULL
            stack.callback(_end, subprocess.Popen(words, env=environment, stdout=silent, stderr=silent))

        munge = ("pid-file", "log-file", "seed-file")
        files = [f"--{name}={folder}/munge.{name}" for name in munge]
        start("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={key}", *files)
        wait_for((folder / "munge.socket").exists, what="munged does not start")
        start("slurmctld", "-D", "-f", str(folder / "slurm.conf"))
        cluster = Cluster(folder, environment)
        stack.callback(lambda: [_end(one) for one in cluster.slurmds.values()])
        for name in NODES:
            (folder / f"spool-{name}").mkdir()
            cluster.start_node(name)
        wait_for(lambda: _idle(cluster) == len(NODES), what="the nodes do not become idle")
        yield cluster
        subprocess.run(["scancel", f"--user={user}"], env=environment, check=False, capture_output=True, timeout=60)
        time.sleep(1)


def _idle(cluster: Cluster) -> int:
    words = ["sinfo", "--noheader", "--Node", "--format=%T"]
    done = subprocess.run(words, env=cluster.environment, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.split().count("idle")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
