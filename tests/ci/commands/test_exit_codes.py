"""How a command ends that cannot go on: never with the code that blames the author, and never with a traceback."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import click
import pytest

from kernelgate.bench.core.errors import BuildError, KernelgateError, PreemptedError, UsageError
from kernelgate.ci.commands import cli, exit_codes
from tests import miniature
from tests.called import EndsWith

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "tests" / "data" / "comparisons" / "identical.json"
WITH_VERBS = """
import sys, time
import click
from kernelgate.bench.system import progress
from kernelgate.ci.commands import cli

@cli.cli.command()
def wait():
    try:
        print("ready", flush=True)
        time.sleep(60)
    finally:
        print("cleaned", flush=True)

@cli.cli.command()
def fails():
    raise ZeroDivisionError("by {}\\nand more")

@cli.cli.command()
def tells():
    progress.say("more follows")
    click.echo("done")

@cli.cli.command()
def speaks():
    click.echo("1 µs ± 2 × 3")

cli.main()
"""


def kernelgate(*words: str, **more: object) -> subprocess.Popen[str]:
    """A process with four verbs more, which fail as no other does."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT, **more}
    return subprocess.Popen([sys.executable, "-c", WITH_VERBS, *words], **given)  # type: ignore[call-overload, no-any-return]


def ended(*words: str, **more: object) -> tuple[int, str, str]:
    process = kernelgate(*words, **more)
    out, err = process.communicate(timeout=60)
    return process.returncode, out or "", err


def test_a_full_disk_is_no_regression() -> None:
    with Path("/dev/full").open("w") as full:
        code, _, said = ended("speaks", stdout=full)
    assert (code, said) == (74, "kernelgate: the output cannot be written: no space left on device\n")


def test_a_log_without_room_hides_no_exit_code() -> None:
    with Path("/dev/full").open("w") as full:
        assert ended("fails", stderr=full)[:2] == (70, "")
        assert ended("tells", stderr=full)[:2] == (0, "done\n")


def test_a_reader_that_is_gone_hears_nothing_more() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    assert ended("speaks", stdout=writing) == (141, "", "")
    os.close(writing)


def test_a_signal_unwinds_what_runs_unless_nohup_has_it_ignored() -> None:
    process = kernelgate("wait", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (143, "cleaned\n", "kernelgate: stopped by SIGTERM")


def test_a_step_whose_machine_is_taken_away_fails_nothing_where_another_job_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But what decides whether anything is measured does fail."""
    monkeypatch.setenv("KERNELGATE_PREEMPTED", "true")
    preempted, taken = PreemptedError("preempted"), exit_codes.StoppedError(signal.SIGTERM)
    for word, error, code in (("bench", preempted, 0), ("fuzz", taken, 0), ("step", taken, 143)):
        monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / word))
        monkeypatch.setattr(cli.cli, "main", Mock(side_effect=error))
        assert cli.run([word, "admit"]) == code
        assert code or (tmp_path / word).read_text() == "preempted=true\n"
        assert (tmp_path / word).exists() == (code == 0)


def test_a_fault_of_our_own_is_one_sentence_and_its_traceback_a_file(tmp_path: Path) -> None:
    code, out, said = ended("fails", env={**os.environ, "TMPDIR": str(tmp_path)})
    assert (code, out) == (70, "")
    (file,) = tmp_path.iterdir()
    assert said == (
        "kernelgate: unexpected ZeroDivisionError (by {}), which is a fault of kernelgate's: "
        f"please report it with {file}, its traceback\n"
    )
    assert re.match(r"Traceback .*in fails.*ZeroDivisionError: by \{\}\nand more", file.read_text(), re.DOTALL)


def test_a_terminal_that_says_ascii_is_no_fault() -> None:
    assert ended("speaks", env={**os.environ, "PYTHONIOENCODING": "ascii"}) == (0, "1 µs ± 2 × 3\n", "")


def test_a_folder_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert ends_with(74, "cards").err == "kernelgate: the current folder no longer exists\n"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="root needs setpriv to lose its right to read all")
def test_what_may_not_be_read_is_no_output_that_failed(tmp_path: Path) -> None:
    """Nor are its options called wrongly, nor is it empty."""
    bare = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all") if os.geteuid() == 0 else ()
    made = miniature.write(tmp_path, {"kernels/scale.py": miniature.SCALE_CARD, "run.json": "{}"})
    folder, file = made / "kernels", made / "kernels" / "scale.py"

    def said(*words: object) -> tuple[int, str]:
        command = [*bare, sys.executable, "-m", "kernelgate.ci.commands.cli", *map(str, words)]
        variables = {**os.environ, "KERNELGATE_CACHE": str(folder)}
        done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    cards_, outcomes = ("cards", "--list", "--cards", folder), ("outcomes", "--sessions", folder / "sessions")
    assert said(*cards_)[0] == 0
    (made / "run.json").chmod(0)
    assert said("report", made / "run.json") == (3, f"kernelgate: {made}/run.json: cannot be read: Permission denied\n")
    file.chmod(0)
    assert said(*cards_) == (3, f"kernelgate: {file}: permission denied\n")
    folder.chmod(0)
    assert said(*cards_) == (3, f"kernelgate: {folder} cannot be read: permission denied\n")
    assert said(*outcomes) == (3, f"kernelgate: {folder}/sessions: permission denied\n")
    library = folder / ("a" * 32)
    kept = [(folder, 3, f"{folder}:"), (library, 3, f"{library}/library.json:")]
    for one, code, name in (*kept, (library / "sub", 74, f"{library} cannot be removed:")):
        folder.chmod(0o700)
        (library / "sub").mkdir(parents=True, exist_ok=True)
        one.chmod(0)
        ended, told = said("cache", "prune", "--days", 0)
        assert (ended, told.lower()) == (code, f"kernelgate: {name} permission denied\n".lower())
        one.chmod(0o700)
    folder.chmod(0o500)
    assert said("report", RECORD, "-o", folder / "comment.md")[0] == 74
    folder.chmod(0o700)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KernelgateError("no GPU"), 3, "kernelgate: no GPU"),
        (BuildError("it does not compile"), 1, "kernelgate: it does not compile"),
        (UsageError("what?"), 64, "kernelgate: what?"),
        (click.UsageError("what?"), 64, ""),
        (OSError(errno.EROFS, "Read-only file system", "run.json"), 74, "kernelgate: run.json: read-only file system"),
        (MemoryError(), 3, "kernelgate: there is too little memory (ulimit -v)"),
        (OSError(errno.EMFILE, "", "a"), 3, "kernelgate: too few files may be open at once: allow 256 (ulimit -n)"),
        (
            FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/Tmp']"),
            74,
            "kernelgate: no usable temporary directory found in ['/Tmp']: make room in one, or set TMPDIR",
        ),
        (ExceptionGroup("of tasks", [ExceptionGroup("of one", [BrokenPipeError()])]), 141, ""),
        (OverflowError("timestamp too large"), 3, "kernelgate: this machine's clock is centuries from now: set it"),
        (KeyboardInterrupt(), 130, "kernelgate: interrupted"),
        (SystemExit(0), 0, ""),
    ],
)
def test_each_error_has_its_code(error: BaseException, code: int, said: str) -> None:
    assert exit_codes.of_error(error) == (code, said)


def test_a_traceback_that_finds_no_room_is_no_second_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", full)
    cut_short = click.Abort()  # as click takes a compiled file that is cut short, for the end of its input
    cut_short.__cause__ = EOFError()
    for error in (ZeroDivisionError(), cut_short):
        name = type(error.__cause__ or error).__name__
        said = f"kernelgate: unexpected {name}; its traceback could not be written (No space left on device)"
        assert exit_codes.of_error(error) == (70, said)
