"""Data flows one way: `bench` measures, `ci` judges; what each package may import is a rule, not a habit."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent

CROSSING = {"bench", "bench.core", "bench.record", "bench.explain", "bench.explain.metrics", "bench.explain.ncu_reader"}
"""Of `bench`, what crosses to `ci`: plain data and errors, the run record, the profiler's counters and the reader of
its reports."""

MEASURING = ("bench.core", "bench.record", "bench.system", "bench.build", "bench.kernel")
MEASURES_ALL = (*MEASURING, "bench.check", "bench.timing", "bench.explain")
JUDGING = ("ci.policy", "ci.document", "ci.judge", "ci.explain", "ci.history", "ci.bisect", "ci.report", "ci.github")
MAY_IMPORT = {
    "bench.core": (),
    "bench.record": ("bench.core",),
    "bench.system": ("bench.core", "bench.record"),
    "bench.build": ("bench.core", "bench.record", "bench.system"),
    "bench.kernel": ("bench.core", "bench.record", "bench.system", "bench.build"),
    "bench.check": MEASURING,
    "bench.timing": MEASURING,
    "bench.explain": MEASURING,
    "bench.measure": MEASURES_ALL,
    "bench": (),
    "ci.document": (),
    "ci.policy": (),
    "ci.judge": ("ci.document", "ci.policy"),
    "ci.explain": ("ci.document",),
    "ci.history": ("ci.document", "ci.policy", "ci.judge", "ci.bisect"),
    "ci.bisect": ("bench.measure", "ci.document", "ci.policy", "ci.judge"),
    "ci.report": ("ci.document", "ci.policy", "ci.judge", "ci.explain", "ci.history"),
    "ci.github": ("ci.document", "ci.policy", "ci.judge", "ci.explain", "ci.history", "ci.bisect", "ci.report"),
    "ci.pipeline": (*MEASURES_ALL, "bench.measure", *JUDGING),
    "ci.lab": (*MEASURES_ALL, "bench.measure", *JUDGING, "ci.pipeline"),
    "ci.commands": ("ci", "bench"),
    "ci": (),
}
"""Each package, and those that it may import beside itself."""

HEAVY = {"torch", "triton", "pynvml"}
GITHUB = {"github", "requests"}
MEASURES = {
    *("ci.commands.check", "ci.commands.local", "ci.commands.measure"),
    *("ci.commands.pair", "ci.commands.search", "ci.commands.session"),
    *("ci.lab.trying", "ci.pipeline.local", "ci.pipeline.paired", "ci.pipeline.scan"),
}
"""What measures on this machine, beside judging."""
USES_GITHUB = {"ci.commands", "ci.github", "ci.lab"}


@cache
def modules() -> dict[str, Path]:
    """Every module by its name below `kernelgate`."""
    found = {}
    for top in ("bench", "ci"):
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def package(module: str) -> str:
    """The longest prefix that has a rule; a file directly in `bench` or `ci` belongs to that."""
    return max((known for known in MAY_IMPORT if module == known or module.startswith(f"{known}.")), key=len)


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports(path: Path) -> Iterator[str]:
    """The full names that a module imports, also where it is called."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole.removeprefix("kernelgate.") in modules() else node.module


def test_imports_follow_the_flow() -> None:
    against = []
    for module, path in modules().items():
        home = package(module)
        crossing = CROSSING if home.startswith("ci") else {"bench"}
        allowed = (home, *MAY_IMPORT[home])
        ours = (name.removeprefix("kernelgate.") for name in imports(path) if name.startswith("kernelgate."))
        against += [
            (module, name)
            for name in ours
            if package(name) not in allowed and name.split(".")[0] not in allowed
            if name not in crossing and package(name) not in crossing - {"bench", "bench.explain"}
        ]
    assert against == []


LOADS = """
import importlib, sys
for name in sys.argv[2:]:
    before = set(sys.modules)
    importlib.import_module("kernelgate." + name)
    if new := set(sys.argv[1].split()) & sys.modules.keys() - before:
        print(name, *sorted(new))
"""


@pytest.mark.slow
def test_judging_loads_nothing_of_a_gpu_and_only_the_bot_loads_github() -> None:
    judging = [name for name in modules() if name.startswith("ci") and name not in MEASURES]
    bot = [name for name in judging if package(name) in USES_GITHUB]
    names = [*(name for name in judging if name not in bot), "ci.github.client", *bot, "bench.timing.worker"]
    words = [sys.executable, "-c", LOADS, " ".join(HEAVY | GITHUB), *names]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines() == ["ci.github.client github requests", "bench.timing.worker pynvml torch"]


def test_help_loads_nothing_heavy() -> None:
    code = "import sys, kernelgate.ci.commands.cli as c; c.run(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    found = set(done.stdout.split())
    assert "click" in found
    assert not found & {"torch", "scipy", "numpy", "jinja2", "pydantic", "rich", "sqlalchemy", "fsspec"}


def requirements(names: list[str]) -> set[str]:
    """The distributions of these names, and all that they need on this machine."""
    found: set[str] = set()
    waiting = [Requirement(name) for name in names]
    done: set[str] = set()
    while waiting:
        wanted = waiting.pop()
        if str(wanted) in done:
            continue
        done.add(str(wanted))
        found.add(canonicalize_name(wanted.name))
        for need in map(Requirement, metadata.requires(wanted.name) or ()):
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in {"", *wanted.extras}):
                waiting.append(need)
    return found


@pytest.mark.slow
def test_what_is_imported_comes_with_an_install() -> None:
    """Of itself or by an extra; what a test's environment has besides is not there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    named = [
        *project["dependencies"],
        *(one for name in ("cuda", "history", "mcp", "ncu") for one in extras[name]),
    ]
    there, known = requirements(named), metadata.packages_distributions()
    outside = {name.partition(".")[0] for path in modules().values() for name in imports(path)}
    outside -= sys.stdlib_module_names | {"kernelgate"} | {"pytest", "triton"}  # of whose users they are
    assert [name for name in outside if not there & {canonicalize_name(one) for one in known[name]}] == []


@pytest.mark.slow
def test_no_message_names_a_file_that_another_repository_lacks() -> None:
    """The pages are published, and make's targets are here alone. A help text is a message, too."""
    ours = re.compile(r"docs/[\w-]+\.md|\.ci/runner|\bmake (?:env|pr|test)\b")
    allowed = {"the demo is in kernelgate's own repository: clone it, run `make env` there, then `make demo`"}
    found = set[tuple[str, str]]()
    for module, path in modules().items():
        said = {node for node in nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        if not module.startswith("ci.commands."):
            said -= {node.value for node in nodes(path) if isinstance(node, ast.Expr)}
        found |= {(module, node.value) for node in said if ours.search(node.value) and node.value not in allowed}
    assert found == set()


def test_nothing_outside_of_a_card_knows_what_a_kernel_computes() -> None:
    """Neither the words of the kernel that is included, nor those of any other case."""
    words = re.compile(r"attention|sdpa|head.?dim|causal|fa_s512", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for top in ("bench", "ci", ".github")
        for path in sorted((ROOT / top).rglob("*"))
        if path.is_file()
        and not path.is_symlink()  # a page of docs/
        and path.suffix in (".py", ".jinja", ".html", ".css", ".yml", ".md", ".toml")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if words.search(line)
    ]
    assert found == []


WITHOUT = """
import sys
import tomllib
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(name + " is not among the judge's packages")
sys.meta_path.insert(0, Absent())
import importlib
for name in {bot!r}:
    importlib.import_module("kernelgate." + name)
from kernelgate.ci.commands.cli import run
sys.exit([run(words) for words in {commands!r}] != [0, 1, 1])
"""


@pytest.mark.slow
def test_the_judges_packages_are_enough(tmp_path: Path) -> None:
    """As `make env-judge` installs them, for the jobs that hold the write token."""
    [listed] = re.findall(r"^JUDGE := (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    kept = requirements(listed.split())
    owners = metadata.packages_distributions()
    absent = {module for module, of in owners.items() if not kept & {canonicalize_name(name) for name in of}}
    absent -= {"kernelgate"}
    assert {"torch", "pynvml", "ncu_report", "pytest", "mypy"} <= absent
    record, out = "tests/data/cards/swiglu_slower.json", str(tmp_path / "out")
    commands = [["report", record, "-o", out, "--html", f"{out}.html"], ["compare", record], ["template", "README.md"]]
    bot = [name for name in modules() if name.startswith("ci.github.")]
    code = WITHOUT.format(absent=absent, bot=bot, commands=commands)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
