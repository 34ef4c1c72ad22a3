"""Data flows one way: `bench` measures, `ci` judges; what each may import is a rule, not a habit."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
CI_MODULES = sorted(f"ci.{path.stem}" for path in (ROOT / "ci").glob("*.py") if path.stem != "__init__")
HEAVY = ("torch", "triton", "pynvml", "github")
TALK_TO_GITHUB = {f"ci.{name}" for name in ("admit", "baseline", "command", "fetch", "github", "plan", "posting")}


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("path", sorted((ROOT / "bench").glob("*.py")), ids=lambda path: path.name)
def test_bench_never_imports_ci(path: Path) -> None:
    assert not {name for name in imports(path) if name.split(".")[0] == "ci"}


@pytest.mark.parametrize("module", CI_MODULES)
def test_ci_imports_nothing_of_a_gpu(module: str) -> None:
    """In a fresh interpreter, importing the module loads neither torch nor a GPU library, nor, mostly, PyGithub."""
    heavy = tuple(name for name in HEAVY if not (name == "github" and module in TALK_TO_GITHUB))
    code = f"import sys, {module}; print(*(name for name in {heavy!r} if name in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert loaded.stdout.split() == []


def test_help_loads_nothing_heavy() -> None:
    code = "import sys, ci.cli; ci.cli.run(['--help']); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    modules = set(loaded.stdout.split())
    assert "click" in modules
    assert not modules & {"torch", "scipy", "numpy", "jinja2", "pydantic", "rich"}


def test_the_plan_of_the_house_names_every_workflow_and_module() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    workflows = {path.name for path in (ROOT / ".github/workflows").glob("*.yml")}
    modules = {path.stem for room in ("bench", "ci") for path in (ROOT / room).glob("*.py") if path.stem != "__init__"}
    assert {name for name in workflows if f"`{name}`" not in page} == set()
    assert {name for name in modules if f"`{name}`" not in page} == set()


def requirements(names: list[str]) -> set[str]:
    """The distributions of these names, and all that they need on this machine."""
    found: set[str] = set()
    while names:
        name = canonicalize_name(names.pop())
        if name in found:
            continue
        found.add(name)
        needs = [Requirement(need) for need in metadata.requires(name) or ()]
        names += [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return found


WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(name + " is not among the judge's packages")
sys.meta_path.insert(0, Absent())
import ci.admit, ci.baseline, ci.command, ci.fetch, ci.plan, ci.posting, ci.review
from ci.cli import run
sys.exit(run({words!r}))
"""


@pytest.mark.parametrize("words", [["report", "-o", "{out}", "--html", "{out}"], ["compare"], ["template"]])
def test_the_judges_packages_are_enough(words: list[str], tmp_path: Path) -> None:
    """As `make env-judge` installs them, for the jobs that hold the write token."""
    [listed] = re.findall(r"^JUDGE := (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    kept = requirements(listed.split())
    owners = metadata.packages_distributions()
    absent = {module for module, of in owners.items() if not kept & {canonicalize_name(name) for name in of}}
    absent -= {"bench", "ci"}
    assert {"torch", "pynvml", "ncu_report", "pytest", "mypy"} <= absent
    file = "README.md" if words == ["template"] else "tests/data/duels/slower_5pct.json"
    called = [words[0], file, *(word.format(out=tmp_path / "out") for word in words[1:])]
    code = WITHOUT.format(absent=absent, words=called)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == ({"report": 0, "compare": 1, "template": 1}[words[0]], "")
