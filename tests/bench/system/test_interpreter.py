"""Kernels in a Python of the project's own, which has torch and nothing of kernelgate's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.system import beside, interpreter
from kernelgate.bench.system.worker import child_environment
from tests import miniature
from tests.ci.commands.test_try import CPU_CARD

WITHHELD = ("kernelgate", "pydantic", "pynvml", "annotated_types", "typing_inspection", "rich", "click", "__editable__")


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment without any package."""
    folder = tmp_path_factory.mktemp("pythons") / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python"


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with this Python's torch, without what kernelgate imports besides, that prints and reads as it starts."""
    folder = tmp_path_factory.mktemp("pythons") / "project"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    own = Path(interpreter.installed().torch[0]).parent  # type: ignore[index]
    [packages] = folder.glob("lib/python*/site-packages")
    for path in own.iterdir():
        if not path.name.startswith(WITHHELD) and path.suffix != ".pth":
            (packages / path.name).symlink_to(path)
    (packages / "talks.pth").write_text("import sys; print('it begins', sys.stdin.read())\n")
    return folder / "bin" / "python"


def test_what_the_project_has_itself_comes_first(tmp_path: Path) -> None:
    """A module of one name beside kernelgate hides nothing of the project's, whose kernels may need that very one."""
    folders = {}
    for name in ("theirs", "ours"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pynvml.py").write_text(f"SAYS = {name!r}")
        (tmp_path / name / f"only_{name}.py").write_text("")
        folders[name] = str(tmp_path / name)
    (tmp_path / "theirs" / "program.py").write_text(
        "import pynvml\nimport kernelgate\nimport only_ours\ndef main():\n    print(pynvml.SAYS, kernelgate.__file__)\n"
    )
    held = json.dumps({"pynvml": folders["ours"], "only_ours": folders["ours"]})
    words = [sys.executable, beside.__file__, str(interpreter.ROOT), held, "program"]
    env = {**os.environ, "PYTHONPATH": folders["theirs"]}
    done = subprocess.run(words, capture_output=True, text=True, env=env, check=True)
    assert done.stdout.split() == ["theirs", str(interpreter.ROOT / "kernelgate" / "__init__.py")]


def test_pythonpath_stays_the_projects(project: Path) -> None:
    given = {"PYTHONPATH": "/theirs", "SOME_TOKEN": "x"}
    assert child_environment(given, project) == {"PYTHONPATH": "/theirs"}
    assert child_environment(given)["PYTHONPATH"].split(os.pathsep) == [str(interpreter.ROOT), "/theirs"]


def test_a_python_that_cannot_measure_is_refused_with_what_to_do(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(python: Path) -> str:
        with pytest.raises(UsageError) as error, interpreter.using(python):
            pass
        return str(error.value)

    assert refused(bare) == f"{bare} lacks what is needed to measure there: {bare} -m pip install torch numpy"
    assert refused(tmp_path / "none") == f"{tmp_path}/none is no Python that can be run: No such file or directory"
    assert "is no Python that can be run: it printed nothing" in refused(Path("/bin/true"))
    own = interpreter.installed()
    for changes, said in (
        ({"version": (3, 10)}, f"{bare} is Python 3.10; kernels are measured in Python 3.11 or newer"),
        ({"version": (3, 99), "pydantic": None}, "-m pip install pydantic"),
        ({"pydantic": "1.10.2"}, '-m pip install "pydantic>=2.9"'),
    ):
        monkeypatch.setattr(interpreter, "_asked", Mock(return_value=own.model_copy(update=changes)))
        assert refused(bare).endswith(said)
    assert interpreter.current() == Path(sys.executable)


@pytest.mark.slow
def test_one_commit_in_two_environments(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`kernelgate try HEAD HEAD --env-b`: what is compared is what is installed."""
    from kernelgate.bench import record
    from kernelgate.ci.commands import cli

    repo = miniature.repository(tmp_path / "clone", {"csrc/scale.cpp": miniature.SCALE})
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards/scale.py").write_text(CPU_CARD, encoding="utf-8")
    monkeypatch.chdir(repo)
    out = tmp_path / "out"
    words = ["--cards", str(tmp_path / "cards"), "--out", str(out)]
    assert cli.run(["try", "HEAD", "HEAD", *words, "--env-b", str(project)]) in (0, 1, 2, 3)
    made = record.read(out / "run.json")
    assert {one.side: one.python for one in made.builds} == {"base": sys.executable, "head": str(project)}
    assert [one.interpreter for one in made.environments] == [sys.executable, str(project)]
    assert {one.role for one in made.processes} == {"alternating", "witness"}
    said = (out / "comment.md").read_text()
    assert "Base and head ran in two environments: with the same versions of all that is known of them." in said
    assert f"--env-a {sys.executable} --env-b {project}" in said
    assert "same library" not in said
    plain = cli.run(["try", "HEAD", "HEAD", *words, "--python", str(project)])
    assert plain == 2, "the same environment on both sides: one library"
    assert record.read(out / "run.json").environment.interpreter == str(project)
