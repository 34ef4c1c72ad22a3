"""What native code of a kernel finds where it runs, and what it can put in the place of something else."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from kernelgate.bench.check import trial_process
from kernelgate.bench.system import isolation
from kernelgate.bench.system.isolation import Isolation
from kernelgate.bench.system.worker import child_environment, worker_pool
from kernelgate.bench.timing import process
from tests.miniature import write
from tests.workflows.documents import texts, workflows

WORKFLOWS = workflows()
DIGESTS = {
    "base-digest": "${{ needs.build.outputs.base-digest }}",
    "head-digest": "${{ needs.build.outputs.head-digest }}",
}
LIBRARY = re.compile(r"kernelgate-library-(base|head)")


def test_no_step_measures_a_library_that_is_not_the_one_that_was_built() -> None:
    """Whoever replaces the artifact, or the folder while another library is fuzzed."""
    job = WORKFLOWS["measure"].jobs["measure"]
    assert (
        job["env"]["BASE"] == "out/libraries/kernelgate-library-base${{ inputs.pair }}@sha256:${{ inputs.base-digest }}"
    )
    assert (
        job["env"]["HEAD"] == "out/libraries/kernelgate-library-head${{ inputs.pair }}@sha256:${{ inputs.head-digest }}"
    )
    for step in job["steps"]:
        words = [step.get("run", ""), *map(str, step.get("env", {}).values())]
        for text in words:
            assert all(text[found.end() :].startswith("@sha256:") for found in LIBRARY.finditer(text)), step["name"]
            assert len(re.findall(r"--(?:base-|head-|)library", text)) == len(re.findall(r'"\$(?:BASE|HEAD)"', text))


@pytest.mark.parametrize("name", ["answer-command", "measure-pull-request", "profile", "refresh-baseline"])
def test_the_digests_come_from_the_job_that_built(name: str) -> None:
    given = WORKFLOWS[name].jobs["measure"]["with"]
    sides = ["head-digest"] if name == "refresh-baseline" else list(DIGESTS)
    assert {side: given.get(side) for side in sides} == {side: DIGESTS[side] for side in sides}


def test_the_base_is_built_where_no_file_of_the_head_is() -> None:
    """Building the head runs its code."""
    jobs = WORKFLOWS["build"].jobs
    assert set(jobs) == {"base", "head"}
    digests = {f"{side}-digest": f"${{{{ jobs.{side}.outputs.digest }}}}" for side in jobs}
    told = WORKFLOWS["build"].triggers["workflow_call"]["outputs"]
    assert {name: output["value"] for name, output in told.items()} == digests
    assert not [text for text in texts(jobs["base"]) if "head-sha" in text]
    assert "needs" not in jobs["base"]


# ----------------------------------------------------------------------------------------------------------------------
# With bubblewrap
# ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """The variables of a step on a self-hosted runner, whose folders are there."""
    home = tmp_path / "runner"
    orders, workspace = home / "_work/_temp/_runner_file_commands", home / "_work/repository/repository"
    for folder in (orders, workspace / "out"):
        folder.mkdir(parents=True)
    (home / ".credentials").write_text("the runner's")
    (workspace / "out/run.json").write_text("{}")
    (orders / "set_env").write_text("")
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_ENV": str(orders / "set_env"),
        "GITHUB_WORKSPACE": str(workspace),
        "RUNNER_TEMP": str(orders.parent),
    }


TRIED = {
    "write the environment of later steps": "echo x >>{orders}",
    "find where later steps take orders from": "ls {orders}",
    "read the runner's credentials": "cat {home}/.credentials",
    "rewrite the record": "echo x >{workspace}/out/run.json",
    "put a file into the workspace": "echo x >{workspace}/sitecustomize.py",
    "mount the workspace anew": "unshare -Urm mount -o remount,bind,rw {workspace} {workspace}",
    "take away what hides the runner": "unshare -Urm umount {home}",
    "read the variables of who leads it": "cat /proc/{leader}/environ",
    "read the memory of who leads it": "exec 3</proc/{leader}/mem",
    "write the memory of who leads it": "exec 3<>/proc/{leader}/mem",
    "go around through the leader's root": "cat /proc/{leader}/root{orders}",
    "reach the network": "exec 3<>/dev/tcp/127.0.0.1/{port}",
}


OF_SOURCES = {
    "find the process that leads it": "ls /proc/{leader}",
    "end the process that leads it": "kill -0 {leader}",
}
"""Of a card, a compiler, a build command; a kernel may, for CUDA needs the numbers of processes."""


@pytest.fixture(params=["kernel", "sources"])
def apart(request: pytest.FixtureRequest, runner: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Isolation:
    """How a process of a kernel is isolated, or one of a card, a compiler or a build command."""
    found = isolation.of(runner)
    if not found.words:
        pytest.skip(found.said)
    monkeypatch.setattr(isolation, "here", lambda: found)
    return found if request.param == "kernel" else isolation.of_sources.__wrapped__()


@pytest.mark.parametrize("command", [*TRIED.values(), *OF_SOURCES.values()], ids=[*TRIED, *OF_SOURCES])
def test_an_isolated_process_cannot(command: str, runner: dict[str, str], apart: Isolation) -> None:
    if command in OF_SOURCES.values() and "--unshare-pid" not in apart.words:
        pytest.skip("a kernel may")
    with socket.create_server(("127.0.0.1", 0)) as server:
        names = {
            "orders": runner["GITHUB_ENV"],
            "workspace": runner["GITHUB_WORKSPACE"],
            "home": Path(runner["RUNNER_TEMP"]).parents[1],
            "leader": os.getpid(),
            "port": server.getsockname()[1],
        }
        words = ["bash", "-c", f"{command.format(**names)} || exit 9"]
        done = subprocess.run(apart.around(words), capture_output=True, text=True, check=False)
    assert done.returncode not in (0, 127), done.stdout
    assert Path(runner["GITHUB_ENV"]).read_text() == ""
    assert (Path(runner["GITHUB_WORKSPACE"]) / "out/run.json").read_text() == "{}"


NOTES = {
    "a file in shared memory": ("echo x >/dev/shm/{name}", "test -e /dev/shm/{name}"),
    "a file in the temporary folder": ("echo x >/var/tmp/{name}", "test -e /var/tmp/{name}"),
    "System V memory": ("ipcmk -M 4096", "ipcs -m | grep -q 0x"),
    "a message queue": ("ipcmk -Q", "ipcs -q | grep -q 0x"),
}


@pytest.mark.parametrize("note", NOTES)
def test_a_kernel_that_is_checked_leaves_no_note_for_when_it_is_timed(
    note: str, runner: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as "now nobody looks": it could compute what is right only while it is fuzzed."""
    found = isolation.of(runner)
    if not found.words:
        pytest.skip(found.said)
    monkeypatch.setattr(isolation, "here", lambda: found)
    leave, look = (text.format(name=f"kernelgate-note-{os.getpid()}") for text in NOTES[note])
    checked, timed = isolation.alone.__wrapped__(), isolation.here()

    def ends(apart: Isolation, text: str) -> int:
        return subprocess.run(apart.around(["bash", "-c", text]), stdout=subprocess.DEVNULL, check=False).returncode

    assert ends(timed, look) != 0, "it is there before"
    assert ends(checked, f"{leave} && {look}") == 0, "it can be left, and would be found"
    assert ends(timed, look) != 0


def test_only_what_is_timed_has_the_memory_that_timing_shares() -> None:
    with worker_pool() as workers:
        for function, has in ((process.VERIFIER, True), (process.WORKER, True), (trial_process.WORKER, False)):
            pid = workers.take(function).pid
            held = set[str]()
            for one in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(FileNotFoundError):  # it imports meanwhile
                    held.add(one.readlink().name)
            assert any(one.startswith("memfd:kernelgate") for one in held) == has, function


def test_an_isolated_process_has_what_it_needs(runner: dict[str, str], apart: Isolation) -> None:
    """The code that it runs, what it measures, a place of its own to write to, and the folder that is named to it,
    wherever that lies."""
    made = Path(runner["RUNNER_TEMP"]).parents[1] / "cache"
    made.mkdir()
    record = Path(runner["GITHUB_WORKSPACE"]) / "out/run.json"
    code = (
        "import os, pathlib, sys, tempfile; import kernelgate.bench.core.errors; tempfile.mkdtemp()\n"
        "(pathlib.Path.home() / 'cache').write_text('x'); (pathlib.Path(sys.argv[2]) / 'made').write_text('x')\n"
        "print(pathlib.Path(sys.argv[1]).read_text())"
    )
    command = apart.writing(made).around([sys.executable, "-P", "-c", code, str(record), str(made)])
    done = subprocess.run(command, capture_output=True, text=True, env=child_environment(), check=False)
    assert (done.returncode, done.stdout) == (0, "{}\n"), done.stderr
    assert (made / "made").exists()


CARD = """
import os, pathlib, socket
from kernelgate import Extension, Kernel

seen = [one for one in os.environ if one.startswith(("GITHUB_", "RUNNER_"))]
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        seen += ["TAKEN"] * (b"TOKEN_OF_THE_STEP" in pathlib.Path("/proc", pid, "environ").read_bytes())
    except OSError:
        pass
try:
    pathlib.Path(__file__).with_name("written").touch()
    seen.append("written")
except OSError:
    pass


class Kind(Kernel):
    build = Extension("csrc")
    cases = [dict(M=4, seen=str(len(seen)), dtype="fp32")]

    def inputs(self, case, draw):
        return dict(x=draw(case.M))

    def call(self, ops, case, out, x):
        ops.copy(out, x)

    def oracle(self, case, x):
        return x
"""


def test_a_card_is_read_where_neither_a_token_nor_a_file_can_be_taken(runner: dict[str, str], tmp_path: Path) -> None:
    """By `plan` and `report`, whose step holds a token, and before a build and a measurement."""
    found = isolation.of(runner)
    if not found.words:
        pytest.skip(found.said)
    write(tmp_path / "cards", {"kind.py": CARD})
    code = "import sys; from pathlib import Path; from kernelgate.bench.kernel import cards\n"
    code += "print([dict(one.axes) for one in cards.read(Path(sys.argv[1])).without_mistakes()['kind'].suites['pr']])"
    variables = {**os.environ, **child_environment(), **runner, "GITHUB_TOKEN": "TOKEN_OF_THE_STEP"}
    command = [sys.executable, "-P", "-c", code, str(tmp_path / "cards")]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
    assert done.stdout == "[{'M': 4, 'seen': '0', 'dtype': 'fp32'}]\n", done.stderr
    assert not (tmp_path / "cards" / "written").exists()
    outside = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**variables, "GITHUB_ACTIONS": ""}
    )
    assert "'seen': '2'" in outside.stdout, "on a machine of one's own it can"
