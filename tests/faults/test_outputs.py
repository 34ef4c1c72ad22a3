"""What a verb is asked to leave is tried first: nothing is compiled, measured or judged for what has no place."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import click
import pytest

from kernelgate.bench import record
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import OutputError
from kernelgate.ci.commands import cli, schema
from kernelgate.ci.commands.options import OutputPath
from kernelgate.ci.pipeline import local
from tests.called import EndsWith
from tests.ci.report_examples import EXAMPLES
from tests.disks import full
from tests.miniature import git

ROOT = Path(__file__).parents[2]

READ = {
    "--against", "--base-library", "--baseline", "--cards", "--doctor", "--env-a", "--env-b", "--folder", "--from",
    "--fuzz", "--head-library", "--library", "--pinned-library", "--policy", "--python", "--sessions", "--times",
    "--uplot", "body", "folder", "records", "report", "run", "source",
}  # fmt: skip
"""Parameters that name what is read. Every other path is an output: it is tried first, and replaced in one step."""
READ_ALONE = {"patterns --record", "step baseline --record"}
"""Those that read what others write."""


def outputs(is_folder: bool) -> dict[str, tuple[str, ...]]:
    """The words that call each command with each output that it has, up to the output's path."""
    found: dict[str, tuple[str, ...]] = {}
    for name, command in schema.commands(cli.cli):
        for one in command.params:
            option = max(one.opts, key=len)
            label = f"{name} {option}"
            if isinstance(one.type, click.Path) and option not in READ and label not in READ_ALONE:
                assert isinstance(one.type, OutputPath), f"{label}: is it read? Then list it here, else use OUTPUT"
                if one.type.is_folder == is_folder:
                    found[label] = (*name.split(), option)
    return found


FILES, FOLDERS = outputs(is_folder=False), outputs(is_folder=True)


def refused(words: tuple[str, ...], path: Path, ends_with: EndsWith) -> str:
    """What is said in one line. There is no repository here, and no argument: whatever came first would be said."""
    printed = ends_with(74, *words, path)
    assert printed.out == ""
    (said,) = printed.err.splitlines()[-1:]
    assert str(path) in said
    return said


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No repository; and nothing half written stays."""
    monkeypatch.chdir(tmp_path)
    yield
    assert not list(tmp_path.rglob(".kernelgate-*"))


@pytest.mark.parametrize("verb", FILES)
@pytest.mark.parametrize("fault", ["a folder in its place", "below a file", "no folder can be made", "a full disk"])
def test_a_file_that_has_no_place_stops_a_verb_at_once(ends_with: EndsWith, verb: str, fault: str) -> None:
    Path("folder").mkdir()
    Path("file").write_text("of the last run", encoding="utf-8")
    path, why = {
        "a folder in its place": (Path("folder"), "it is a folder"),
        "below a file": (Path("file/run.json"), f"{Path.cwd()}/file is no folder"),
        "no folder can be made": (Path("/sys/no-such-folder/run.json"), ""),
        "a full disk": (Path("file"), "file too large"),
    }[fault]
    with full() if fault == "a full disk" else nullcontext():
        said = refused(FILES[verb], path, ends_with)
    assert said.startswith(f"kernelgate: {path} cannot be written: {why}")
    assert {one.name for one in Path().iterdir()} - {"out"} == {"file", "folder"}
    assert Path("file").read_text(encoding="utf-8") == "of the last run"


@pytest.mark.parametrize("verb", FOLDERS)
@pytest.mark.parametrize("fault", ["a file in its place", "below a file", "no folder can be made", "a full disk"])
def test_a_folder_that_has_no_place_stops_a_verb_at_once(ends_with: EndsWith, verb: str, fault: str) -> None:
    Path("file").touch()
    path = {
        "a file in its place": Path("file"),
        "below a file": Path("file/out"),
        "no folder can be made": Path("/sys/no-such-folder"),
        "a full disk": Path("out"),
    }[fault]
    with full() if fault == "a full disk" else nullcontext():
        said = refused(FOLDERS[verb], path, ends_with)
    assert said.startswith(f"kernelgate: {path} cannot be written: ")


def test_a_pr_that_cannot_start_keeps_the_last_comment(ends_with: EndsWith) -> None:
    Path("out").mkdir()
    for name in (local.RECORD, local.COMMENT, local.PAGE):
        (Path("out") / name).write_text("of the last run", encoding="utf-8")
    assert "is not a git repository that can be read" in ends_with(3, "pr").err
    assert [path.read_text() for path in Path("out").iterdir()] == ["of the last run"] * 3


def test_a_record_that_cannot_be_added_to_stops_a_verb_at_once(ends_with: EndsWith) -> None:
    Path("run.json").write_text("{", encoding="utf-8")
    for words in (["resources", "--record"], ["profile", "--record"], ["sanitize", "--record"], ["bench", "--fuzz"]):
        assert "run.json is not a kernelgate.run/2 record" in ends_with(3, *words, "run.json").err


SOURCES = sorted(path for part in ("bench", "ci") for path in (ROOT / part).rglob("*.py"))
WRITERS = {"write_text", "write_bytes"}
SCRATCH = {"bench/build/build.py", "bench/build/cache.py", "bench/build/command.py", "bench/build/toolchain.py",
           "bench/core/errors.py", "bench/core/files.py", "bench/kernel/triton_build.py",
           "bench/kernel/triton_runtime.py", "ci/github/artifacts.py"}  # fmt: skip
"""Files in folders of the process's own, which are renamed when they are whole, or are gone with it."""


def test_what_is_asked_for_is_written_in_one_place() -> None:
    for path in SOURCES:
        calls = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call)]
        for call in calls:
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            modes = [one.value for one in call.args if isinstance(one, ast.Constant)] if name == "open" else []
            if name in WRITERS or any(mode in ("w", "wb", "x", "xb", "w+b") for mode in modes):
                where = path.relative_to(ROOT).as_posix()
                assert where in SCRATCH, f"{where}:{call.lineno}: write it with bench.core.files, which leaves no half"


def test_a_result_is_said_although_its_file_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    """The disk fills up after it was tried. The page is written although the comment cannot be."""
    record.write(EXAMPLES["slower"]().record, Path("run.json"))
    write = files.write

    def filling(path: Path, content: str | bytes) -> None:
        if path.name == "comment.md":
            raise OutputError(f"{path} cannot be written: no space left on device")
        write(path, content)

    monkeypatch.setattr(files, "write", filling)
    printed = ends_with(74, "report", "run.json", "-o", "comment.md", "--html", "page.html", "--json")
    assert json.loads(printed.out)["markdown"].startswith("### ")
    assert printed.err == "kernelgate: comment.md cannot be written: no space left on device\n"
    assert Path("page.html").exists()


def test_an_index_that_cannot_be_written_is_no_fault_of_the_record(ends_with: EndsWith, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    record.write(EXAMPLES["slower"]().record, Path("run.json"))
    with full(1 << 10):
        assert "index.sqlite cannot be written: " in ends_with(74, "history", "add", "run.json").err
    assert "1 record added" in ends_with(0, "history", "add", "run.json").out


def test_what_is_added_to_a_full_device_is_said_to_have_no_room(tmp_path: Path) -> None:
    """And not that the device has no size to go back to."""
    files.append(tmp_path / "log", b"an event\n")
    with pytest.raises(OutputError, match="/dev/full cannot be written: no space left on device"):
        files.append(Path("/dev/full"), b"an event\n")
