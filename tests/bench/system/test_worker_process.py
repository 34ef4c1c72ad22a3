"""A process that misbehaves is told apart from one that answers: real processes, whatever they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pydantic import BaseModel, TypeAdapter

from kernelgate.bench.system import worker_process
from kernelgate.bench.system.worker_process import ROOT, Child, ChildError, child_environment
from tests.processes import alive


class Word(BaseModel):
    text: str


WORD = TypeAdapter(Word)
PATIENCE_S = 30.0


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where to write what `Child("script")` runs."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "script.py"


def test_lines_go_both_ways_and_prints_do_not_mix_in(child: Path) -> None:
    child.write_text(
        "import os\n"
        "from kernelgate.bench.system.worker_process import Parent\n"
        "from pydantic import BaseModel\n"
        "class Word(BaseModel):\n    text: str\n"
        "parent = Parent()\n"
        "print('noise from Python', flush=True); os.write(1, b'noise from C')\n"
        "while True:\n    parent.send(Word(text=parent.receive(Word).text.upper() * 100_000))\n"
    )
    with Child("script") as script:
        for text in ("one", "two ⏱"):
            script.send(Word(text=text))
            assert script.receive(WORD, PATIENCE_S).text == text.upper() * 100_000


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import sys; sys.exit(7)", "exited early with code 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV"),
        ("raise ValueError('the reason')", "code 1; last lines of stderr: .*ValueError: the reason"),
        (
            "import os; os.write(2, b'said\\nbefore'); os.abort()",
            "was killed by SIGABRT; last lines of stderr: said / before",
        ),
        ("print('{\"text\": 5}')", "sent b'{\"text\": 5}', which is not a valid message"),
        ("print('garbage', flush=True); import time; time.sleep(99)", "sent b'garbage', which is not a valid message"),
        ('import sys; sys.stdout.write(\'{"text": "half\')', "exited early with code 0"),
    ],
)
def test_a_child_that_does_not_answer(child: Path, code: str, says: str) -> None:
    child.write_text(code)
    with Child("script") as script, pytest.raises(ChildError, match=says):
        script.receive(WORD, PATIENCE_S)


def test_a_child_that_hangs_is_ended(child: Path, tmp_path: Path) -> None:
    child.write_text(
        f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "os.write(2, b'waiting for ever'); time.sleep(9999)"
    )
    with (
        Child("script") as script,
        pytest.raises(ChildError, match=r"for 2 s .* last lines of stderr: waiting for ever"),
    ):
        script.receive(WORD, 2)
    assert not alive(int((tmp_path / "pid").read_text()))


def test_writing_to_a_child_that_is_gone(child: Path) -> None:
    child.write_text("raise SystemExit(3)")
    with Child("script") as script:
        with pytest.raises(ChildError, match="exited early with code 3"):
            script.receive(WORD, PATIENCE_S)
        with pytest.raises(ChildError, match="exited early with code 3"):
            script.send(Word(text="x" * 100_000))


def test_a_child_that_is_gone_is_noticed_though_what_it_started_holds_its_output(child: Path, tmp_path: Path) -> None:
    child.write_text(
        "import os, signal, time\n"
        "if os.fork():\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
        f"{named(tmp_path / 'pid')}\ntime.sleep(9999)"
    )
    with Child("script") as script:
        with pytest.raises(ChildError, match="was killed by SIGSEGV"):
            script.receive(WORD, PATIENCE_S)
        wait_for((tmp_path / "pid").exists)
    assert not alive(int((tmp_path / "pid").read_text()))


def test_a_child_dies_with_its_parent_even_while_it_loads(child: Path, tmp_path: Path) -> None:
    """As a worker that imports torch, for seconds, before it looks at anything."""
    pid = tmp_path / "pid"
    child.write_text(f"import os, time\n{named(pid)}\ntime.sleep(9999)")
    code = (
        "import time; from kernelgate.bench.system.worker_process import Child\nwith Child('script'): time.sleep(9999)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    wait_for(pid.exists)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_for(lambda: not alive(int(pid.read_text())))


def test_a_child_whose_parent_is_gone_before_it_looks_does_nothing() -> None:
    """Its standard input has no writer any more."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", worker_process.START, "this"],
        stdin=closed_pipe(),
        env=child_environment(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, b"")


def test_the_current_folder_cannot_stand_in_for_the_package(
    child: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a checkout under test that has a folder `bench` of its own."""
    child.write_text('import kernelgate, sys; print(Word := \'{"text": "%s"}\' % kernelgate.__file__)')
    (tmp_path / "elsewhere" / "kernelgate").mkdir(parents=True)
    (tmp_path / "elsewhere" / "kernelgate" / "__init__.py").write_text("raise SystemExit('the wrong kernelgate')")
    monkeypatch.chdir(tmp_path / "elsewhere")
    with Child("script") as script:
        assert script.receive(WORD, PATIENCE_S).text == str(ROOT / "kernelgate" / "__init__.py")


WITHHELD = [
    "GITHUB_ENV",
    "GITHUB_PATH",
    "GITHUB_OUTPUT",
    "GITHUB_STEP_SUMMARY",
    "GITHUB_TOKEN",
    "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_RUNNER_HOOK_JOB_COMPLETED",
    "RUNNER_TEMP",
    "KERNELGATE_FAILURE",
    "GH_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "HF_TOKEN",
    "SSH_AUTH_SOCK",
]


@pytest.mark.parametrize("name", WITHHELD)
def test_a_child_is_told_neither_where_the_runner_takes_orders_from_nor_secrets(name: str) -> None:
    assert name not in child_environment({name: "x", "PATH": "/bin"})


def test_a_child_keeps_what_a_kernel_may_need() -> None:
    names = (
        "PATH",
        "HOME",
        "CUDA_VISIBLE_DEVICES",
        "LD_LIBRARY_PATH",
        "OMP_NUM_THREADS",
        "TRITON_CACHE_DIR",
        "MY_TILE",
    )
    variables = dict.fromkeys(names, "x")
    assert child_environment(variables).items() >= variables.items()


@pytest.mark.parametrize(("before", "after"), [({}, ROOT), ({"PYTHONPATH": "/mine"}, f"{ROOT}{os.pathsep}/mine")])
def test_the_variables_of_a_child_are_those_it_is_given(before: dict[str, str], after: object) -> None:
    assert child_environment({"A": "1", **before}) == {"A": "1", "PYTHONPATH": str(after)}


def named(file: Path) -> str:
    """Code that writes its process's number into a file, which is there only when it is whole."""
    new = f"{file}.new"
    return f"open({new!r}, 'w').write(str(os.getpid())); os.rename({new!r}, {str(file)!r})"


def closed_pipe() -> int:
    """The end of a pipe whose other end is closed."""
    reading, writing = os.pipe()
    os.close(writing)
    return reading


def wait_for(condition: object, limit_s: float = 60.0) -> None:
    assert callable(condition)
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)
