"""Surroundings that lack something: one sentence, and never the code that blames the author."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelgate.bench.build import cache as build_cache
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system import beside
from tests.called import EndsWith

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "tests" / "data" / "comparisons" / "identical.json"
BARE = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}


def ended(*words: str, before: Callable[[], object] | None = None, **variables: str) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "kernelgate.ci.commands.cli", *words],
        cwd=ROOT,
        env={**os.environ, **variables},
        preexec_fn=before,
        capture_output=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


def closed(*descriptors: int) -> Callable[[], None]:
    def close() -> None:
        for one in descriptors:
            os.close(one)

    return close


@pytest.mark.nightly
@pytest.mark.parametrize("which", [(1,), (2,), (0, 2), (0, 1, 2)], ids=["stdout", "stderr", "stdin and stderr", "all"])
def test_closed_descriptors_change_no_exit_code(which: tuple[int, ...]) -> None:
    code, out, _ = ended("decide", "0.8", "1.0", before=closed(*which))
    assert (code, bool(out)) == (0, 1 not in which)
    assert ended("report", str(RECORD), before=closed(*which))[0] == 0
    assert ended("compare", "no-such-file.json", before=closed(*which))[0] == 3


LOCALES = {
    "LANG=C": {"LC_ALL": "C"},
    "a locale of ASCII": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "output of ASCII": {"PYTHONIOENCODING": "ascii"},
    "a locale that is not there": {"LC_ALL": "xx_XX.UTF-8"},
}


@pytest.mark.nightly
@pytest.mark.parametrize("locale", LOCALES)
def test_a_report_goes_out_as_utf8_whatever_the_locale(locale: str) -> None:
    code, out, said = ended("report", str(RECORD), **LOCALES[locale])
    assert (code, said) == (0, b"")
    assert "❔" in out.decode("utf-8")


def test_output_that_takes_few_characters_shows_the_others_as_escapes() -> None:
    code = "from kernelgate.ci.commands import cli; "
    code += "cli.take_any_character(); print('1 \\u00b5s \\u2754 \\udcff')"
    for encoding, printed in (
        ("latin-1", "1 µs \\u2754 \\udcff\n".encode("latin-1")),
        ("ascii", "1 µs ❔ \\udcff\n".encode()),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code], env={**BARE, "PYTHONIOENCODING": encoding}, capture_output=True, check=False
        )
        assert (done.stdout, done.stderr) == (printed, b"")


@pytest.mark.parametrize("columns", ["0", "1", "20", "no number"])
def test_a_narrow_terminal_takes_nothing_away(
    monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert "Next: " in ends_with(0, "decide", "0.8", "1.0").out


def limited(what: int, most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(what, (most, most))


@pytest.mark.nightly
@pytest.mark.parametrize("megabytes", [80, 150, 250])
def test_little_memory_is_said_before_a_library_ends_the_process(megabytes: int) -> None:
    code, out, said = ended("compare", str(RECORD), before=limited(resource.RLIMIT_AS, megabytes << 20))
    assert (code, out) == (3, b"")
    assert said.decode() == "kernelgate: this process may not use 256 MiB of memory: allow it 1 GiB (ulimit -v)\n"


@pytest.mark.nightly
def test_a_gigabyte_is_enough() -> None:
    code, out, said = ended("compare", str(RECORD), before=limited(resource.RLIMIT_AS, 1 << 30))
    assert (code, said) == (3, b"")
    assert b"annot tell" in out


@pytest.mark.nightly
@pytest.mark.parametrize("descriptors", [6, 16])
def test_few_descriptors_are_enough_or_named(descriptors: int) -> None:
    code, _, said = ended("cards", "--list", before=limited(resource.RLIMIT_NOFILE, descriptors))
    assert (code, said) in ((0, b""), (3, b"kernelgate: too few files may be open at once: allow 256 (ulimit -n)\n"))


def test_a_home_that_is_not_there_is_named_with_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", build_cache.CACHE_VARIABLE):
        monkeypatch.delenv(name, raising=False)

    def nameless(_: int) -> None:
        raise KeyError("uid not found")

    monkeypatch.setattr("pwd.getpwuid", nameless)
    with pytest.raises(KernelgateError, match=r"no home folder .*: set KERNELGATE_CACHE"):
        build_cache.cache_folder()
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert build_cache.cache_folder() == Path("/caches/kernelgate")


@pytest.mark.parametrize("variable", [build_cache.CACHE_VARIABLE, "XDG_CACHE_HOME"])
def test_a_cache_whose_name_no_message_can_hold_is_named(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a name beyond ASCII where the locale is C and Python's UTF-8 mode is off."""
    monkeypatch.delenv(build_cache.CACHE_VARIABLE, raising=False)
    monkeypatch.setenv(variable, "/c\udcffche")
    with pytest.raises(KernelgateError, match="is no UTF-8 here: set KERNELGATE_CACHE"):
        build_cache.cache_folder()
    monkeypatch.setenv(variable, "/cäche")
    assert build_cache.cache_folder().parts[1] == "cäche"


def test_a_failure_note_that_cannot_be_written_is_a_second_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("KERNELGATE_FAILURE", str(tmp_path / "file" / "note.json"))
    monkeypatch.chdir(tmp_path)
    first, second = ends_with(74, "resources", "--record", "/dev/null/run.json").err.splitlines()
    assert first.startswith("kernelgate: /dev/null/run.json cannot be written: ")
    assert second.startswith(f"kernelgate: no note of this failure: {tmp_path}/file/note.json cannot be written: ")


@pytest.mark.parametrize("epoch", ["x", "", "-1", "1.5", "9" * 5000, "²"])
def test_a_time_for_builds_that_is_none_is_named(
    epoch: str, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    assert "is no number of seconds since 1970: unset it" in ends_with(64, "decide", "0.8", "1.0").err
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    ends_with(0, "decide", "0.8", "1.0")


def test_an_interrupt_while_the_command_is_loaded_is_one_sentence() -> None:
    interrupted = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'click':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "import kernelgate\n"
        "kernelgate.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", interrupted], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "kernelgate: interrupted\n")


SHADOWS = {"secrets.py": "", "click.py": "raise RuntimeError", "typing.py": "raise RuntimeError", "datetime.py": "("}
SHADOWS |= {"types.py": "", "re.py": "(", "fsspec.py": ""}


@pytest.mark.parametrize("name", SHADOWS)
def test_a_file_in_the_place_of_a_module_is_named(name: str, tmp_path: Path) -> None:
    """On PYTHONPATH, where Python looks first; whatever else lies there is no fault."""
    verb = ("history", "rebuild") if name == "fsspec.py" else ("decide", "0.8", "1.0")
    # Without what an editable installation runs when Python starts, which needs modules itself.
    words = [sys.executable, "-S", "-P", "-c", "import kernelgate; kernelgate.main()", *verb]
    places = ("", str(tmp_path), str(ROOT), str(Path(pytest.__file__).parents[1]))
    variables = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(places),
        "KERNELGATE_HISTORY_STORE": str(tmp_path / "store"),
    }
    (tmp_path / "another.py").write_text("raise RuntimeError")
    done = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / name).write_text(SHADOWS[name])
    done = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
    said = (
        f"kernelgate: PYTHONPATH puts {tmp_path / name} in the place of a needed module: rename it, or unset PYTHONPATH"
    )
    assert (done.returncode, done.stderr) == (3, f"{said}\n")


def test_a_file_of_a_packages_name_is_not_that_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as somebody's torch.py: its folder would be searched for torch's headers, which the sources then lack."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "shadow_alone.py").touch()
    (tmp_path / "shadow_whole").mkdir()
    (tmp_path / "shadow_whole" / "__init__.py").touch()
    assert beside._folder_and_version("shadow_alone", "pytest") is None
    assert beside._folder_and_version("shadow_whole", "pytest") == [str(tmp_path / "shadow_whole"), pytest.__version__]
