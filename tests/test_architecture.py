"""Data flows one way: `bench` measures, `ci` judges; what each may import is a rule, not a habit."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

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
