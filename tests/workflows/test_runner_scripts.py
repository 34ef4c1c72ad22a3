"""The scripts of a GPU runner, run for real: the machine's own programs are stand-ins that note what they are told."""

from __future__ import annotations

import configparser
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from openapi_core.testing import MockRequest

from tests.fakes.github_server import example, specification
from tests.workflows.documents import ROOT, workflows

SCRIPTS = ROOT / ".ci/runner"
BIN = Path(sys.executable).parent


def test_shellcheck_finds_nothing() -> None:
    done = subprocess.run(
        [BIN / "shellcheck", *sorted(SCRIPTS.glob("*.sh"))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@dataclass
class Machine:
    """`root` stands in for the machine's root folder."""

    root: Path

    def __post_init__(self) -> None:
        self.bin = self.root / "bin"
        for folder in (self.bin, self.root / "etc/modprobe.d", self.root / "etc/systemd/system"):
            folder.mkdir(parents=True)

    def program(self, name: str, body: str = "") -> None:
        """A program that notes its words, then does `body`."""
        note = f"{{ printf '%s\\037' {name} \"$@\"; printf '\\036'; }} >>{self.root / 'calls'}"
        file = self.bin / name
        file.write_text(f"#!/bin/bash\n{note}\n{body}\n", "utf-8")
        file.chmod(0o755)

    def moved(self, script: Path, folder: Path) -> Path:
        """A copy of a script that finds /opt, /etc and /var in the folder."""
        text = re.sub(r"(?<![\w./])/(opt|etc|var)/", rf"{self.root}/\1/", script.read_text("utf-8"))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / script.name).write_text(text, "utf-8")
        (folder / script.name).chmod(0o755)
        return folder / script.name

    def start(self, script: Path, *words: str, **told: str) -> subprocess.Popen[str]:
        variables = {
            "PATH": f"{self.bin}:{BIN}:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": "",
            "METADATA": "http://127.0.0.1:9",
            **told,
        }
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        return subprocess.Popen([script, *words], env=variables, text=True, start_new_session=True, **pipes)

    def run(self, script: Path, *words: str, **told: str) -> tuple[int, str]:
        with self.start(script, *words, **told) as turn:
            said, _ = turn.communicate(timeout=60)
        return turn.returncode, said

    @property
    def calls(self) -> list[list[str]]:
        """The programs that were started, each with its words."""
        file = self.root / "calls"
        told = file.read_text("utf-8").split("\036") if file.exists() else []
        return [call.split("\037")[:-1] for call in told if call]

    def called(self, name: str) -> list[list[str]]:
        return [words for program, *words in self.calls if program == name]


def hook(name: str, folder: Path, smi: str, **told: str) -> tuple[int, str]:
    """Runs a hook with a `nvidia-smi` whose body is `smi`, and the variables that the runner gives."""
    machine = Machine(folder)
    machine.program("nvidia-smi", smi)
    return machine.run(SCRIPTS / name, **told)


QUIET = 'case "$1" in *compute-apps*) ;; *) echo "NVIDIA L4, 580.95.05, 41, 2040 MHz, 30 W";; esac'
SERVED = {"KERNELGATE_REPOSITORIES": "my-org/kernels my-org/more", "GITHUB_REPOSITORY": "my-org/more"}


@pytest.mark.parametrize(
    ("repository", "smi", "said"),
    [
        ("my-org/more", QUIET, "NVIDIA L4"),
        ("stranger/kernels", QUIET, "not one that it serves"),
        ("my-org/kernel", QUIET, "not one that it serves"),
        ("my-org/more", "echo 4711; echo 4712", "4711 4712"),
        ("my-org/more", f'case "$*" in *--id=0*) {QUIET} ;; *) echo 4711 ;; esac', "NVIDIA L4"),
        ("my-org/more", "exit 9", "does not answer"),
    ],
    ids=["served", "a stranger's", "the start of a name", "the GPU is in use", "a second GPU is", "no driver"],
)
def test_a_job_of_a_served_repository_starts_on_an_idle_gpu_and_no_other(
    repository: str, smi: str, said: str, tmp_path: Path
) -> None:
    code, told = hook("job-started.sh", tmp_path, smi, **{**SERVED, "GITHUB_REPOSITORY": repository})
    assert (code, said in told) == (int(said != "NVIDIA L4"), True), told


def test_what_a_job_left_on_the_gpu_ends_and_its_workspace_is_emptied(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "deep/.hidden").mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"]) as left:
        assert hook("job-completed.sh", tmp_path, f"echo {left.pid}", GITHUB_WORKSPACE=str(workspace))[0] == 0
        assert left.wait(timeout=10) == -9
    assert list(workspace.iterdir()) == []
    assert hook("job-completed.sh", tmp_path / "without", "exit 9")[0] == 0, "without a GPU or a workspace"


TOKEN = "github_pat_s3cret"  # noqa: S105 (made up)
CONFIGURATION = "eyJhZ2VudElkIjoxfQ=="
CONFIGURED = {
    "ORGANISATION": "my-org",
    "RUNNER_GROUP_ID": "7",
    "GPU_LABEL": "l4",
    "REPOSITORIES": "my-org/kernels my-org/more",
    "SM_MHZ": "",
    "SECONDS": "600",  # as if the job had taken that long
}
UNIT = """
while [[ $1 == --* ]]; do
    case $1 in
    --setenv=*) export "${1#--setenv=}" ;;
    --working-directory=*) cd "${1#*=}" || exit ;;
    esac
    shift
done
exec "$@"
"""
"""What systemd-run does with its words, without the unit."""


class Server(Machine):
    """A machine that has been prepared, with a runner whose program notes what it is given."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.job = root / "var/lib/kernelgate/job"
        self.script = self.moved(SCRIPTS / "serve.sh", root / "opt/kernelgate")
        self.runner = root / "opt/kernelgate/actions-runner/run.sh"
        self.runner.parent.mkdir()
        self.let_the_runner("true")
        self.token = root / "credentials/token"
        self.token.parent.mkdir()
        self.token.write_text(TOKEN + "\n", "utf-8")
        self.program("nvidia-smi")
        self.let_github(f"""echo '{{"runner": {{}}, "encoded_jit_config": "{CONFIGURATION}"}}'""")
        self.program("chown", 'stat --format "%a %F" "${@: -1}/runner/.jit" >>' + str(root / "modes"))
        self.program("systemd-run", UNIT)
        self.program("systemctl")
        self.program("sleep")

    def let_github(self, answer: str) -> None:
        header = 'for word; do [[ $word != @* ]] || cat "${word#@}" >' + str(self.root / "header") + "; done"
        self.program("curl", f"{header}\n{answer}")

    def let_the_runner(self, do: str) -> None:
        note = f'printf \'%s|\' "$ACTIONS_RUNNER_INPUT_JITCONFIG" "$HOME" "$PWD" "$#" >{self.root / "given"}'
        self.runner.write_text(f"#!/bin/bash\n{note}\n{do}\n", "utf-8")
        self.runner.chmod(0o755)

    def serve(self, **told: str) -> tuple[int, str]:
        return self.run(self.script, **CONFIGURED | {"CREDENTIALS_DIRECTORY": str(self.token.parent)} | told)


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


def asks_for_a_runner(server: Server, path: str, group: int) -> None:
    """In a request that fits GitHub's description, and names no field that is not in there."""
    [words] = server.called("curl")
    assert words[-1] == f"https://api.github.com{path}"
    assert "--max-time" in words
    [method, data] = [words[words.index(name) + 1] for name in ("--request", "--data")]
    request = MockRequest("https://api.github.com", method.lower(), path, data=data.encode())
    specification().validate_request(request)
    body = json.loads(data)
    labels = [*workflows()["measure"].jobs["measure"]["runs-on"][:-1], "l4"]
    expected = {"runner_group_id": group, "work_folder": "_work", "labels": labels}
    assert body == expected | {"name": body["name"]}
    assert len(body["name"]) <= 64
    assert "encoded_jit_config" in example("runner-jitconfig")


def test_a_runner_is_registered_and_runs_one_job_in_the_unit_that_the_pages_promise(server: Server) -> None:
    assert server.serve() == (0, "")
    asks_for_a_runner(server, "/orgs/my-org/actions/runners/generate-jitconfig", 7)

    # The token goes to GitHub, and the configuration to the runner by a file that only its user reads.
    assert (server.root / "header").read_text("utf-8") == f"Authorization: Bearer {TOKEN}\n"
    configuration, home, folder, given = (server.root / "given").read_text("utf-8").split("|")[:-1]
    assert configuration == CONFIGURATION
    assert (home, folder, given) == (str(server.job), str(server.job / "runner"), "0")
    assert TOKEN not in str(server.calls)
    assert CONFIGURATION not in str(server.calls)
    assert (server.root / "modes").read_text("utf-8") == "600 regular file\n"
    assert server.called("chown") == [["-R", "kernelgate:kernelgate", str(server.job)]]

    [words] = server.called("systemd-run")
    properties = [word.removeprefix("--property=").split("=", 1) for word in words if word.startswith("--property=")]
    assert dict(properties) == {
        "NoNewPrivileges": "yes",
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "PrivateTmp": "yes",
        "RemoveIPC": "yes",
        "ReadWritePaths": str(server.job),
        "IPAddressDeny": "169.254.0.0/16 fd00:ec2::254 fd20:ce::254",
        "RuntimeMaxSec": "20h",
    }
    opt = server.root / "opt/kernelgate"
    assert {
        *("--uid=kernelgate", "--gid=kernelgate", "--wait", "--collect", "--unit=kernelgate-job"),
        f"--setenv=KERNELGATE_REPOSITORIES={CONFIGURED['REPOSITORIES']}",
        f"--setenv=ACTIONS_RUNNER_HOOK_JOB_STARTED={opt}/job-started.sh",
        f"--setenv=ACTIONS_RUNNER_HOOK_JOB_COMPLETED={opt}/job-completed.sh",
    } <= set(words)
    assert server.called("nvidia-smi") == [["--persistence-mode=1"]]
    server.serve(SM_MHZ="1500")
    assert server.called("nvidia-smi")[-1] == ["--lock-gpu-clocks=1500,1500"]


PERSONAL = {"ORGANISATION": "", "RUNNER_GROUP_ID": "", "REPOSITORIES": "some-one/their.kernels"}


def test_the_repository_of_a_person_gets_a_runner_of_its_own_under_the_same_rules(server: Server) -> None:
    assert server.serve(**PERSONAL) == (0, "")
    asks_for_a_runner(server, "/repos/some-one/their.kernels/actions/runners/generate-jitconfig", 1)
    assert (server.root / "header").read_text("utf-8") == f"Authorization: Bearer {TOKEN}\n"
    # The hook that asks whose job it is gets the same list, and the unit is the organisation's.
    [told] = server.called("systemd-run")
    assert "--setenv=KERNELGATE_REPOSITORIES=some-one/their.kernels" in told
    server.serve(REPOSITORIES=PERSONAL["REPOSITORIES"])
    [_, ours] = server.called("systemd-run")
    assert told == ours
    server.let_github("exit 22")
    assert "its rights, or REPOSITORIES" in server.serve(**PERSONAL)[1]


WRONG = {
    "a group of no organisation": (PERSONAL | {"RUNNER_GROUP_ID": "7"}, "ORGANISATION"),
    "two repositories": (PERSONAL | {"REPOSITORIES": "some-one/kernels some-one/more"}, "ORGANISATION"),
    "no owner": (PERSONAL | {"REPOSITORIES": "kernels"}, "ORGANISATION"),
    "another path": (PERSONAL | {"REPOSITORIES": "../orgs/my-org"}, "ORGANISATION"),
    **{f"no {name}": ({name: ""}, name) for name in CONFIGURED if name not in ("SM_MHZ", "SECONDS")},
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_setting_is_named_with_its_file_and_nothing_registered(case: str, server: Server) -> None:
    told, name = WRONG[case]
    code, said = server.serve(**told)
    assert (code != 0, said.count("\n")) == (True, 1)
    assert re.search(rf"{name}: set it in \S*/etc/kernelgate/runner.conf", said)
    assert re.search(rf"^{name}=", (SCRIPTS / "runner.conf").read_text("utf-8"), re.MULTILINE)
    assert server.called("curl") == []


@pytest.mark.parametrize("do", ["true", "touch ../left; mkdir -m 0 ../closed", "exit 3", "kill -KILL $$"])
def test_what_the_job_leaves_is_removed_however_it_ends(do: str, server: Server) -> None:
    server.let_the_runner(do)
    code, _ = server.serve()
    assert code == 0
    assert (server.root / "given").exists()
    assert not server.job.exists()


def test_what_an_earlier_job_left_is_gone_before_root_writes(server: Server) -> None:
    victim = server.root / "victim"
    victim.write_text("root's own", "utf-8")
    (server.job / "runner").mkdir(parents=True)
    (server.job / "runner/.jit").symlink_to(victim)
    assert server.serve() == (0, "")
    assert victim.read_text("utf-8") == "root's own"
    assert server.calls[0] == ["systemctl", "stop", "kernelgate-job.service"]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("exit 22", "GitHub registered no runner. 401: the token; 403 or 404: its rights, or ORGANISATION"),
        ("echo '<html>'", "GitHub's answer holds no configuration"),
        ("echo '{}'", "GitHub's answer holds no configuration"),
    ],
)
def test_a_registration_that_fails_is_said_and_not_tried_again_at_once(
    answer: str, sentence: str, server: Server
) -> None:
    server.let_github(answer)
    code, said = server.serve()
    assert code == 1
    assert said.startswith(f"serve.sh: {sentence}")
    assert said.count("\n") == 1
    assert server.called("sleep") == [["60"]]
    assert server.called("systemd-run") == []
    assert not server.job.exists()


def test_what_ends_too_soon_is_said_and_not_followed_by_another_at_once(server: Server) -> None:
    """The runner's own script ends with 0 whatever happens to it."""
    code, said = server.serve(SECONDS="0")
    assert (code, "too soon for a job" in said) == (1, True)
    server.program("systemd-run", "exit 203")
    assert server.serve() == (0, "serve.sh: the job's unit ended with 203\n")
    server.program("nvidia-smi", "exit 9")
    code, said = server.serve()
    assert (code, "the GPU does not answer" in said) == (1, True)
    assert len(server.called("curl")) == 2, "it gets no runner"
    assert server.called("sleep") == [["60"]] * 2
    assert not server.job.exists()


class Cloud(BaseHTTPRequestHandler):
    """The metadata service of both clouds, on a machine of one of them, as their documentation has it."""

    google = True
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        late = self.asked.count(self.path) > 1
        if self.google and self.path == "/computeMetadata/v1/instance/preempted":
            self.answer(200 if self.headers["Metadata-Flavor"] == "Google" else 403, b"TRUE" if late else b"FALSE")
        elif not self.google and self.path == "/latest/meta-data/spot/instance-action":
            self.answer(401 if self.headers["X-aws-ec2-metadata-token"] != "a token" else 200 if late else 404, b"{}")
        else:
            self.answer(404, b"")

    def do_PUT(self) -> None:
        known = not self.google and self.path == "/latest/api/token"
        self.answer(200 if known and self.headers["X-aws-ec2-metadata-token-ttl-seconds"] else 404, b"a token")

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)


@pytest.mark.slow
@pytest.mark.parametrize("google", [True, False], ids=["Google", "Amazon"])
def test_a_clouds_notice_reaches_what_measures_and_nothing_else(server: Server, google: bool) -> None:
    """What ends is kernelgate, which keeps what it has timed; the runner goes on and hands it over."""
    cloud = type("Cloud", (Cloud,), {"google": google, "asked": []})
    server.program("pkill", f"touch {server.root / 'noticed'}")
    server.let_the_runner(f"until [ -e {server.root / 'noticed'} ]; do /bin/sleep 0.1; done; echo handed over")
    with ThreadingHTTPServer(("127.0.0.1", 0), cloud) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        assert server.serve(METADATA=f"http://127.0.0.1:{listening.server_port}") == (0, "handed over\n")
        listening.shutdown()
    assert server.called("pkill") == [["--signal", "TERM", "--uid", "kernelgate", "--full", "/bin/kernelgate "]]
    server.let_the_runner("true")
    assert server.serve() == (0, "")
    assert len(server.called("pkill")) == 1, "no cloud, no notice"


def test_a_stopped_service_ends_the_job_before_it_removes_its_folder(server: Server) -> None:
    server.program("systemctl", f"test -e {server.job} && echo there >>{server.root / 'seen'}")
    server.program("systemd-run", f"touch {server.root / 'runs'}; exec /bin/sleep 60")
    told = CONFIGURED | {"CREDENTIALS_DIRECTORY": str(server.token.parent)}
    with server.start(server.script, **told) as turn:
        while not (server.root / "runs").exists():
            assert turn.poll() is None
        os.killpg(turn.pid, signal.SIGTERM)
        turn.communicate(timeout=60)
    assert turn.returncode == -signal.SIGTERM
    assert (server.root / "seen").read_text("utf-8") == "there\n"
    assert not server.job.exists()


class Bare(Machine):
    """A machine with nothing on it, and the archive that GitHub would hand out."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        for script in SCRIPTS.glob("*.sh"):
            self.moved(script, root / "checkout")
        for name in ("kernelgate-runner.service", "runner.conf"):
            shutil.copy2(SCRIPTS / name, root / "checkout")
        self.archive = root / "runner.tar.gz"
        self.offer("#!/bin/sh\nexit 0\n")
        self.program("id", f"[[ $1 != -u ]] || {{ echo 0; exit; }}; test -e {root / 'user'}")
        self.program("useradd", f"touch {root / 'user'}")
        for name in ("update-initramfs", "systemctl", "apt-get", "apparmor_parser"):
            self.program(name)
        self.program("curl", f'for word; do [[ $last != --output ]] || cp {self.archive} "$word"; last=$word; done')

    def offer(self, dependencies: str, marker: str = "run.sh") -> None:
        with tarfile.open(self.archive, "w:gz") as packed:
            for name, text in (("bin/installdependencies.sh", dependencies), (marker, "#!/bin/sh\n")):
                entry = tarfile.TarInfo(f"./{name}")
                entry.size, entry.mode = len(text), 0o755
                packed.addfile(entry, io.BytesIO(text.encode()))

    def prepare(self, version: str = "2.338.1", checksum: str = "") -> tuple[int, str]:
        words = (version, checksum or hashlib.sha256(self.archive.read_bytes()).hexdigest())
        return self.run(self.root / "checkout/prepare.sh", *words)

    def files(self) -> dict[str, str]:
        """{path: content} of all that stands in the machine's folders."""
        tops = [self.root / name for name in ("opt", "etc", "var")]
        found = [file for top in tops for file in top.rglob("*") if file.is_file()]
        return {str(file.relative_to(self.root)): file.read_text("utf-8") for file in found}


@pytest.fixture
def bare(tmp_path: Path) -> Bare:
    return Bare(tmp_path)


def test_a_bare_machine_becomes_a_runner(bare: Bare) -> None:
    code, said = bare.prepare()
    assert code == 0, said
    system = {"kernelgate/runner.conf", "kernelgate/token", "modprobe.d/kernelgate.conf"}
    programs = {"actions-runner/bin/installdependencies.sh", "actions-runner/run.sh"}
    scripts = {"job-completed.sh", "job-started.sh", "serve.sh"}
    expected = {f"etc/{name}" for name in (*system, "systemd/system/kernelgate-runner.service")}
    assert set(bare.files()) == expected | {f"opt/kernelgate/{name}" for name in programs | scripts}
    assert (bare.root / "etc/kernelgate/token").stat().st_mode & 0o777 == 0o600
    [address] = [word for word in bare.called("curl")[0] if word.startswith("https://")]
    assert address.endswith("/download/v2.338.1/actions-runner-linux-x64-2.338.1.tar.gz")
    [made] = bare.called("useradd")
    assert {"--system", "--no-create-home", "/usr/sbin/nologin"} <= set(made)
    assert ["install", "--yes", "--quiet", "bubblewrap"] in bare.called("apt-get")
    for told in ("restart the machine", "fill in", "put a token", "systemctl enable --now kernelgate-runner"):
        assert told in said
    service = configparser.ConfigParser(interpolation=None)
    service.optionxform = str  # type: ignore[assignment, method-assign]
    service.read(bare.root / "etc/systemd/system/kernelgate-runner.service")
    runs = service["Service"]
    named = [runs["EnvironmentFile"], runs["LoadCredential"].removeprefix("token:"), runs["ExecStart"]]
    assert [(bare.root / name.lstrip("/")).is_file() for name in named] == [True] * 3
    assert (runs["Restart"], service["Unit"]["StartLimitIntervalSec"]) == ("always", "0")
    assert runs["ExecStopPost"].endswith("systemctl stop kernelgate-job.service")
    bare.program("apt-get", "exit 100")
    assert "kernels will have all rights of the user kernelgate" in bare.prepare()[1], "without bubblewrap"


def test_preparing_again_updates_the_program_and_keeps_what_people_wrote(bare: Bare) -> None:
    bare.prepare()
    written = {"etc/kernelgate/runner.conf": "ORGANISATION=my-org\n", "etc/kernelgate/token": TOKEN}
    for name, text in written.items():
        (bare.root / name).write_text(text, "utf-8")
    (bare.root / "etc/kernelgate/token").chmod(0o644)
    bare.offer("#!/bin/sh\n", "newer.sh")
    code, said = bare.prepare("v2.339.0")
    assert code == 0, said
    assert "/v2.339.0/" in str(bare.called("curl")[-1])
    files = bare.files()
    assert {name: files[name] for name in written} == written
    assert (bare.root / "etc/kernelgate/token").stat().st_mode & 0o777 == 0o600
    programs = {name for name in files if "actions-runner" in name}
    assert {Path(name).name for name in programs} == {"installdependencies.sh", "newer.sh"}
    assert len(bare.called("useradd")) == len(bare.called("update-initramfs")) == 1


@pytest.mark.parametrize("first", [True, False])
def test_what_cannot_be_downloaded_or_checked_changes_nothing(first: bool, bare: Bare) -> None:
    if not first:
        bare.prepare()
    before, known = bare.files(), len(bare.calls)
    code, said = bare.prepare(checksum="0" * 64)
    assert code == 1
    assert f"does not have the checksum {'0' * 64}" in said
    assert {program for program, *_ in bare.calls[known:]} == {"id", "curl"}
    bare.program("curl", "exit 22")
    code, said = bare.prepare()
    assert (code, bare.files()) == (1, before)
    assert "2.338.1 could not be downloaded" in said


def test_an_update_that_breaks_off_leaves_the_old_program(bare: Bare) -> None:
    bare.prepare()
    bare.offer("#!/bin/sh\nexit 1\n", "newer.sh")
    assert bare.prepare()[0] != 0
    assert (bare.root / "opt/kernelgate/actions-runner/run.sh").is_file()
