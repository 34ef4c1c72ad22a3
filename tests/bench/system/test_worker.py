"""A process that misbehaves is told apart from one that answers: real processes, whatever they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from kernelgate.bench.system import interpreter, orphans, worker
from kernelgate.bench.system.worker import (
    ROOT,
    WorkerError,
    WorkerFailedError,
    WorkerProcess,
    child_environment,
    worker_pool,
)
from tests.processes import alive, wait_for


class Word(BaseModel):
    text: str


SCRIPT = "script:run"
IMPORTS = """import kernelgate, mmap, os, signal, subprocess
from kernelgate.bench.system.worker import Doing, Leader
from tests.bench.system.test_worker import Word
"""
WRITES = """import os, time
from kernelgate.bench.system.worker import Leader
def run(leader: Leader) -> None: leader._out.write({}); leader._out.flush()"""
PATIENCE_S = 30.0


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where to write what a worker of SCRIPT imports."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "script.py"


def test_lines_go_both_ways_and_prints_do_not_mix_in(child: Path) -> None:
    child.write_text(
        f"{IMPORTS}def run(first: Word, leader: Leader) -> Word:\n"
        "    print('noise from Python', flush=True); os.write(1, b'noise from C')\n"
        "    leader.send(Word(text=first.text.upper() * 100_000))\n"
        "    leader.send(Doing(doing='shouting'))\n"
        "    return Word(text=leader.receive(Word).text.upper() * 100_000)\n"
    )
    with WorkerProcess(SCRIPT) as script:
        for text in ("one", "two ⏱"):
            assert script.ask(Word(text=text), Word, PATIENCE_S).text == text.upper() * 100_000
        assert script.doing.doing == "shouting"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import sys; sys.exit(7)", "^the process exited early with code 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL"),
        (
            "import os; os.write(2, b'said\\nbefore'); os.abort()",
            "was killed by SIGABRT; last lines of stderr: said / before",
        ),
        (WRITES.format(b"x\n") + "; time.sleep(99)", "sent b'x', which is not a valid message"),
        (WRITES.format(b"x" * 100_000), "sent a line of more than 65536 bytes"),
    ],
)
def test_a_child_that_does_not_answer(child: Path, monkeypatch: pytest.MonkeyPatch, code: str, says: str) -> None:
    monkeypatch.setattr(worker, "MAX_LINE", 65536)
    child.write_text(code)
    with WorkerProcess(SCRIPT) as script:
        with pytest.raises(WorkerError, match=says):
            script.receive(Word, PATIENCE_S)
        assert script.killed == ("SIGKILL" in says), "a crash of its own is not ended from outside"


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        ("raise ValueError('the reason')", "ValueError", "ValueError: the reason"),
        ("def run() -> None: raise FileNotFoundError('no such card')", "FileNotFoundError", "no such card"),
        ("", "AttributeError", "AttributeError: module 'script' has no attribute 'run'"),
    ],
)
def test_an_error_that_the_function_raises_is_told(child: Path, code: str, kind: str, says: str) -> None:
    child.write_text(code)
    with WorkerProcess(SCRIPT) as script, pytest.raises(WorkerFailedError) as caught:
        script.receive(Word, PATIENCE_S)
    assert (caught.value.error, str(caught.value)) == (kind, says)


def test_a_child_that_hangs_is_ended(child: Path, tmp_path: Path) -> None:
    child.write_text(f"import os, time; os.write(2, b'for ever')\n{named(tmp_path / 'pid')}\ntime.sleep(9999)")
    with WorkerProcess(SCRIPT) as script:
        wait_for((tmp_path / "pid").exists)
        with pytest.raises(WorkerError, match=r"for 0\.2 s .* last lines of stderr: for ever"):
            script.receive(Word, 0.2)
    assert not alive(int((tmp_path / "pid").read_text()))


def test_writing_to_a_child_that_is_gone(child: Path) -> None:
    child.write_text("raise SystemExit(3)")
    with WorkerProcess(SCRIPT) as script:
        with pytest.raises(WorkerError, match="exited early with code 3"):
            script.receive(Word, PATIENCE_S)
        with pytest.raises(WorkerError, match="exited early with code 3"):
            script.send(Word(text="x" * 100_000))


def test_a_child_that_is_gone_is_noticed_though_what_it_started_holds_its_output(child: Path, tmp_path: Path) -> None:
    child.write_text(
        "import os, signal, time\n"
        "if os.fork():\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
        f"{named(tmp_path / 'pid')}\ntime.sleep(9999)"
    )
    with WorkerProcess(SCRIPT) as script:
        with pytest.raises(WorkerError, match="was killed by SIGSEGV"):
            script.receive(Word, PATIENCE_S)
        wait_for((tmp_path / "pid").exists)
    assert not alive(int((tmp_path / "pid").read_text()))


def test_where_a_child_pauses_all_that_it_started_does(child: Path) -> None:
    """Also in a session of its own, where it would compute what the child is asked for next."""
    child.write_text(
        f"{IMPORTS}def run(leader: Leader) -> None:\n"
        "    shell = subprocess.Popen(['sh', '-c', 'sleep 99 & wait'], start_new_session=True)\n"
        "    leader.send(Word(text=str(shell.pid)))\n"
        "    leader.receive(Word)\n"
        "    leader.send(Word(text='on'))\n"
    )
    with WorkerProcess(SCRIPT) as script:
        shell = int(script.receive(Word, PATIENCE_S).text)
        while len(orphans.family(shell)) < 2:  # the shell starts its own
            time.sleep(0.01)
        script.pause()
        assert {_stat(pid)[0] for pid in orphans.family(script.pid or 0)} == {"T"}
        script.go_on()
        assert script.ask(Word(text=""), Word, PATIENCE_S).text == "on"
        assert _stat(shell)[0] != "T"


def test_where_a_child_pauses_what_is_ending_beside_it_has_ended(child: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Giving much memory back takes a core for as long as the other side's calls do, and no signal stops it."""
    monkeypatch.setattr(orphans, "GRACE_S", PATIENCE_S)  # however busy the machine is
    child.write_text(
        f"{IMPORTS}def run(leader: Leader) -> None:\n    os.truncate(file := os.memfd_create('much'), 1 << 26)\n"
        "    if not (ending := os.fork()):\n"
        "        kept = [mmap.mmap(file, 1 << 26, mmap.MAP_SHARED | mmap.MAP_POPULATE) for _ in range(300)]\n"
        "        os.kill(os.getpid(), signal.SIGSTOP)\n"
        "    os.waitpid(ending, os.WUNTRACED)\n    leader.send(Word(text=str(ending)))\n    leader.receive(Word)\n"
    )
    with WorkerProcess(SCRIPT) as script:
        os.kill(ending := int(script.receive(Word, PATIENCE_S).text), signal.SIGKILL)
        script.pause()
        assert (_stat(ending)[0], script.touched) == ("Z", False)


def test_a_process_that_another_one_slows_while_it_stands_still_is_known(child: Path) -> None:
    """Any process of its user may, such as the other side's. What it does to itself is its own affair."""
    child.write_text(
        f"{IMPORTS}def run(leader: Leader) -> None:\n    os.nice(1)\n    leader.send(leader.receive(Word))\n"
    )
    with WorkerProcess(SCRIPT) as script:
        pid = script.pid or 0
        slow: dict[str, Callable[[], object]] = {
            "nothing": lambda: None,
            "cores": lambda: os.sched_setaffinity(pid, sorted(os.sched_getaffinity(pid))[:1]),
            "priority": lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
            "class": lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
        }
        for thing, slows in slow.items():
            script.pause()
            slows()
            script.go_on()
            changes = thing != "nothing" and not (thing == "cores" and os.cpu_count() == 1)
            assert script.touched == changes, thing
            script.touched = False
        assert script.ask(Word(text="on"), Word, PATIENCE_S).text == "on"


def _stat(pid: int | None) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def test_a_child_dies_with_its_parent_even_while_it_loads(child: Path, tmp_path: Path) -> None:
    """As a worker that imports torch, for seconds, before it looks at anything."""
    pid = tmp_path / "pid"
    child.write_text(f"import os, time\n{named(pid)}\ntime.sleep(9999)")
    code = (
        "import time; from kernelgate.bench.system.worker import WorkerProcess\n"
        f"with WorkerProcess('{SCRIPT}'): time.sleep(9999)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    wait_for(pid.exists)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_for(lambda: not alive(int(pid.read_text())))


def test_a_child_whose_parent_is_gone_before_it_looks_does_nothing() -> None:
    """The pipe that it hears has no writer any more."""
    command = [sys.executable, "-P", "-m", worker.MODULE, "this:run", "0", "1"]
    done = subprocess.run(command, input=b"", env=child_environment(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"")


def test_the_current_folder_cannot_stand_in_for_the_package(
    child: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a checkout under test that has a folder `bench` of its own."""
    child.write_text(f"{IMPORTS}def run() -> Word: return Word(text=kernelgate.__file__)")
    (tmp_path / "elsewhere" / "kernelgate").mkdir(parents=True)
    (tmp_path / "elsewhere" / "kernelgate" / "__init__.py").write_text("raise SystemExit('the wrong kernelgate')")
    monkeypatch.chdir(tmp_path / "elsewhere")
    with WorkerProcess(SCRIPT) as script:
        assert script.receive(Word, PATIENCE_S).text == str(ROOT / "kernelgate" / "__init__.py")


@pytest.mark.slow
def test_what_waits_imports_ahead_and_takes_no_time_of_the_machine_while_it_is_paused(
    child: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child.write_text(
        "from kernelgate.bench.system.worker import Ready\ndef run(first: Ready) -> Ready:\n    return first"
    )
    for name in ("one", "two"):
        (tmp_path / f"spins_{name}.py").write_text("while True: pass")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    one, two = ("not_installed", "spins_one"), ("spins_two",)
    with worker_pool() as workers:
        workers.prepare({SCRIPT: 2})
        first, second = workers.waiting[SCRIPT, frozenset(), interpreter.current()]
        workers.prepare({SCRIPT: 1}, one)
        assert workers.waiting[SCRIPT, frozenset(one), interpreter.current()] == [first, second]
        assert workers.take(SCRIPT, one) is first
        wait_for(lambda: used_s(second) > 0.5)
        with workers.paused():
            before, others = used_s(second), used_s(first)
            wait_for(lambda: used_s(first) > others + 0.5)
            assert used_s(second) == before
        wait_for(lambda: used_s(second) > before)
        workers.prepare({SCRIPT: 1})
        assert alive(second.pid or 0), "its turn may come"
        workers.prepare({SCRIPT: 1}, two)
        assert not alive(second.pid or 0), "nobody needs it any more"
        (third,) = workers.waiting[SCRIPT, frozenset(two), interpreter.current()]
        third.__exit__()
        with workers.paused():
            pass
        assert alive(first.pid or 0)


WITHHELD = "GITHUB_ENV ACTIONS_CACHE_URL RUNNER_TEMP KERNELGATE_FAILURE AWS_PROFILE HF_TOKEN CLIENT_SECRET SIGNING_KEY"
WITHHELD += " MYSQL_PASSWD GPG_PASSPHRASE GITLAB_PAT SENTRY_DSN SLACK_WEBHOOK_URL npm_config__auth MY_CREDENTIALS"
NEEDED = "PATH HOME CUDA_VISIBLE_DEVICES LD_LIBRARY_PATH OMP_NUM_THREADS TRITON_CACHE_DIR MY_TILE GIT_AUTHOR_NAME"


def test_a_child_gets_no_address_with_a_password() -> None:
    given = {
        "A": "https://me:pw@index.example/simple",
        "B": "postgres://:pw@host/db",
        "C": "https://index.example/simple",
        "D": "https://me@index.example/a:b@c",
    }
    assert child_environment(given).keys() == {"C", "D", "PYTHONPATH"}


def test_a_child_is_told_neither_where_the_runner_takes_orders_from_nor_secrets() -> None:
    needed = dict.fromkeys(NEEDED.split(), "x")
    assert child_environment(dict.fromkeys(WITHHELD.split(), "x") | needed) == {**needed, "PYTHONPATH": str(ROOT)}
    assert child_environment({"PYTHONPATH": "/mine"}) == {"PYTHONPATH": f"{ROOT}{os.pathsep}/mine"}


def named(file: Path) -> str:
    """Code that writes its process's number into a file, which is there only when it is whole."""
    new = f"{file}.new"
    return f"open({new!r}, 'w').write(str(os.getpid())); os.rename({new!r}, {str(file)!r})"


def used_s(process: WorkerProcess) -> float:
    """What it has had of the processors, in steps of 10 ms."""
    return sum(map(int, _stat(process.pid)[11:13])) / os.sysconf("SC_CLK_TCK")
