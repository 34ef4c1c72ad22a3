"""Fixtures that more than one folder of tests needs."""

from __future__ import annotations

import gc
import os
import runpy
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import HealthCheck, settings

from kernelgate.bench.build import archs
from kernelgate.bench.build import cache as build_cache
from kernelgate.bench.build.library import Library
from kernelgate.bench.explain import ncu_reader
from kernelgate.bench.kernel import commit
from kernelgate.bench.system import supervise
from kernelgate.ci.commands import cli
from tests.called import EndsWith, Printed
from tests.forked_reader import read_cards_in_forks
from tests.processes import program
from tests.test_architecture import CROSSING, MAY_IMPORT

ROOT = Path(__file__).parent.parent

# One profile for all: a shared machine may stop for seconds at any moment, and the same examples every time make a
# failure of a change that change's; only the constants that Hypothesis finds in our modules differ with those that are
# loaded. `--hypothesis-profile=wide` looks further.
SLOW_MACHINE = (HealthCheck.too_slow,)
settings.register_profile(
    "kernelgate", deadline=None, derandomize=True, max_examples=50, suppress_health_check=SLOW_MACHINE
)
settings.register_profile("wide", deadline=None, max_examples=2000, suppress_health_check=SLOW_MACHINE)
settings.load_profile("kernelgate")

# On a runner of GitHub's, processes are isolated from what they would tell a test; a test that is about it asks for it.
os.environ.pop("GITHUB_ACTIONS", None)

# Tests start thousands of processes, each of which would compile this project's modules anew; and pytest the tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Before torch is loaded: OpenMP threads of one test that spin while they wait take the cores from all others.
os.environ["OMP_WAIT_POLICY"] = "passive"

# A proxy of this machine leads to no server of a test; and looking for one takes as long as the rest of a request.
os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1,localhost"

# A shell that starts the tests in the background has SIGINT ignored, nohup SIGHUP, and children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


# What is imported and collected stays until the end: looking through it again and again finds nothing to free.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


ONE_PROCESS = frozenset(
    {
        "bench/kernel/test_commit.py",
        "bench/kernel/test_operators.py",
        "bench/kernel/test_triton_build.py",
        "ci/report/test_page_browser.py",
        "csrc/test_kernel_cpu.py",
        "gallery/test_gallery.py",
        "test_architecture.py",
        "workflows/test_install_page.py",
    }
)
"""Files whose tests share an expensive fixture: spread over two processes, each would make its own."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shard", metavar="I/N", help="Run the I-th of N parts of the tests, as CI shares them.")
    text = 'Of the tests that guard something, run those of what changed since: "1 day" or a commit.'
    parser.addoption("--changed-since", metavar="SINCE", help=text)
    text = "Of the slow tests that would run, take as many seconds in turns from their files; skip and list the others."
    parser.addoption("--within", metavar="SECONDS", type=float, help=text)


def pytest_configure(config: pytest.Config) -> None:
    text = (
        "guards(*paths): with --changed-since, runs where one of these paths changed; else a slow test, in a package's"
    )
    config.addinivalue_line("markers", f"{text} folder, guards what that package may import")


@pytest.hookimpl(tryfirst=True)  # before any fixture is made for it
def pytest_runtest_setup(item: pytest.Item) -> None:
    asked_for = item.config.getoption("markexpr") == "gpu"  # as `make test-gpu` does, which must not pass untried
    if item.get_closest_marker("gpu") and not asked_for and not archs.gpus_at_hand():
        pytest.skip("this machine has no NVIDIA GPU")


def changed_files(since: str) -> list[str]:
    """The files that commits since then changed, a commit or a time such as "1 day", and the working tree."""
    words = ["log", "--format=", "--name-only", f"--since={since}"] if " " in since else ["diff", "--name-only", since]
    asked = (words, ["diff", "--name-only", "HEAD"], ["ls-files", "--others", "--exclude-standard"])
    run = (subprocess.run(["git", *one], cwd=ROOT, check=True, capture_output=True, text=True) for one in asked)
    return [line for done in run for line in done.stdout.splitlines()]


SHARED = (".ci/", "benchmarks/", "constraints.txt", "csrc/", "pyproject.toml", "tests/conftest.py", "tests/runs.py")
"""What any test may rest on: where one of these changed, every test that guards something runs."""


GUARDED = {
    "attacks": (".ci/", ".github/", "bench/", "ci/"),
    "faults": (".ci/", "bench/", "ci/"),
    "workflows": (".ci/", ".github/", "ci/", "docs/"),
}
"""What folders of tests are about that take long together."""


def guarded(item: pytest.Item) -> list[str]:
    """What a test is about: what it or its folder names, else of a slow one its package and what that may import;
    empty: it always runs, as does what lies directly in tests/bench or tests/ci, which is about several packages."""
    if named := [path for mark in item.iter_markers("guards") for path in mark.args]:
        return [*SHARED, *named]
    folder = item.path.parent.relative_to(ROOT / "tests").as_posix()
    if folder in GUARDED:
        return [*SHARED, f"tests/{folder}/", *GUARDED[folder]]
    package = folder.replace("/", ".")
    if not item.get_closest_marker("slow") or package not in MAY_IMPORT or "." not in package:
        return []
    crossing = {name for name in CROSSING & MAY_IMPORT.keys() if package.startswith("ci.") and "." in name}
    names = {package, *MAY_IMPORT[package], *crossing}
    return [*SHARED, f"tests/{package.replace('.', '/')}/", *sorted(f"{name.replace('.', '/')}/" for name in names)]


SLOW_S = 2.0
LONG_S = {
    "bench/timing/test_paired.py": 15.0,
    "benchmarks/fuzzing/test_caught.py": 15.0,
    "cheats/test_cheats.py": 20.0,
    "cheats/test_native.py": 12.0,
    "ci/judge/test_dependence.py": 57.0,
    "ci/judge/test_prior.py": 3.5,
    "ci/lab/test_session.py": 140.0,
    "ci/test_bisect_verb.py": 62.0,
    "engine/test_checks.py": 5.0,
    "engine/test_real.py": 60.0,
    "test_repositories.py": 43.0,
    "test_site.py": 6.0,
}
"""What a slow test took on two quiet cores, the mean of its file's; of the files that are not here, all together's."""


def taken(slow: Iterable[tuple[str, str, bool]], seconds: float) -> set[str]:
    """Which slow tests fit into these seconds, each a name, its file and whether what it alone guards changed.

    Those where it did come first; then each file gives one test in turn, so that a long file costs no other its place.
    """
    turns: dict[str, int] = {}
    order = []
    for name, file, changed in slow:
        turns[file] = turns.get(file, 0) + 1
        order.append((not changed, turns[file], len(order), name, LONG_S.get(file, SLOW_S)))
    kept = set()
    for *_, name, cost in sorted(order):
        if cost <= seconds:
            seconds -= cost
            kept.add(name)
    return kept


def is_touched(guarded: Iterable[str], changed: Iterable[str]) -> bool:
    return any(file.startswith(path) for file in changed for path in guarded)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def keep(chosen: list[pytest.Item]) -> None:
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen

    files = {item: item.path.relative_to(ROOT / "tests").as_posix() for item in items}
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if files[item] in ONE_PROCESS:
                item.add_marker(pytest.mark.xdist_group(files[item]))
    if since := config.getoption("--changed-since"):
        changed = changed_files(since)
        keep([item for item in items if not (paths := guarded(item)) or is_touched(paths, changed)])
        if (seconds := config.getoption("--within")) is not None:
            own = {item: [f"tests/{files[item]}", *set(guarded(item)) - set(SHARED)] for item in items}
            slow = [item for item in items if item.get_closest_marker("slow")]
            in_time = taken([(item.nodeid, files[item], is_touched(own[item], changed)) for item in slow], seconds)
            for item in slow:
                if item.nodeid not in in_time:
                    item.add_marker(pytest.mark.skip(reason="left to the nightly run, since the time is spent"))
    if shard := config.getoption("--shard"):
        part, parts = map(int, shard.split("/"))
        units = {item: files[item] if files[item] in ONE_PROCESS else item.nodeid for item in items}
        # Neighbours cost alike, so they are dealt.
        dealt = set(list(dict.fromkeys(units.values()))[part - 1 :: parts])
        keep([item for item in items if units[item] in dealt])


@pytest.fixture(scope="session")
def kernel_library() -> Library:
    """The working tree's attention, for the CPU and the targets that `kernelgate build` chooses here."""
    return commit.build_tree(ROOT).built["attention"]


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all tests that load libraries: two copies of one library cannot be in one process. The processes
    that share the tests share it, too."""
    root = tmp_path_factory.getbasetemp()
    return (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / "cache"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of the test's own, on a machine that has no GPU and asks for none."""
    folder = tmp_path / "the cache"
    monkeypatch.setenv(build_cache.CACHE_VARIABLE, str(folder))
    monkeypatch.delenv(archs.ARCH_LIST, raising=False)
    monkeypatch.setattr(archs, "gpus_at_hand", lambda: ())
    monkeypatch.setattr(build_cache, "_held", {})
    yield folder
    for handle in build_cache._held.values():  # a process holds them until it ends, and this one runs many tests
        os.close(handle)


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a g++ of our own first on PATH: it answers --version as the real one does, then runs `script`, in which
    `$GXX` is the real one."""

    def install(script: str) -> Path:
        answers = f'GXX={shutil.which("g++")}\n[ "$1" = --version ] && exec $GXX --version\n{script}'
        path = program(tmp_path / "compiler" / "g++", answers, "/bin/bash")
        monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
        return path.parent

    return install


@pytest.fixture
def no_compiling(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, whoever starts ninja fails the test."""
    run = supervise.run

    def others(command: Sequence[str | Path], **how: Any) -> int:
        """Such as a compiler that is asked for its version."""
        return pytest.fail("something was compiled") if Path(command[0]).name == "ninja" else run(command, **how)

    def forbid() -> None:
        monkeypatch.setattr(supervise, "run", others)

    return forbid


@pytest.fixture
def ends_with(capsys: pytest.CaptureFixture[str]) -> EndsWith:
    """Calls `kernelgate` with these words, which must end with that exit code."""

    def call(code: int, *words: object) -> Printed:
        capsys.readouterr()
        ended = cli.run([str(word) for word in words])
        printed = Printed(*capsys.readouterr())
        assert ended == code, printed.err
        return printed

    return call


@pytest.fixture
def reports_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Profiler reports are read in this process, where the second takes a hundredth of the first."""

    def waiting() -> MagicMock:
        reader = MagicMock()
        reader.__enter__.return_value = reader
        reader.receive = lambda *_: ncu_reader.launches_of(reader.send.call_args.args[0])
        return reader

    monkeypatch.setattr(ncu_reader, "waiting", waiting)
    monkeypatch.setattr("resource.setrlimit", lambda *_: None)


@pytest.fixture(scope="session")
def kernel(kernel_library: Library) -> Any:
    """The operators `forward` and `forward_out` of the working tree, ready to be called and traced."""
    from kernelgate.bench.kernel import operands  # here, because the tests of ci run without torch

    operators = operands.load(kernel_library)
    fake = runpy.run_path(str(ROOT / "csrc" / "fa_s512" / "_fake.py"))  # the package need not be installed
    fake["register_fake"](kernel_library.manifest.namespace)
    return operators


@pytest.fixture
def cards_in_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where a card hangs, or a variable of the environment is its own."""
    read_cards_in_forks(monkeypatch)
