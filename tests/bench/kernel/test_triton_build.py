"""Packages compiled in the worker's own process, with Triton and without a GPU.

Most of what is called stands in probed/my_kernels/; where kernelgate must point is marked there with `# fault: NAME`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from kernelgate.bench.build.cache import write_all
from kernelgate.bench.build.sources import Package, package_sources
from kernelgate.bench.core.errors import BuildError, CompileError
from kernelgate.bench.kernel import fuzz_trials, triton_build
from kernelgate.bench.kernel.triton_build import Compiled, CompileRequest, compile_package
from kernelgate.bench.kernel.triton_runtime import fill
from kernelgate.bench.record import LAYOUTS
from kernelgate.bench.system.supervise import TimeLimits
from kernelgate.bench.system.worker import child_environment
from tests import registered

pytestmark = pytest.mark.slow
PROBED = Path(__file__).parent / "probed"
TARGETS = ("sm_80", "sm_90")
WRAPPERS = (
    "plain.scale",
    "plain.twice",
    "plain.product",
    "wrappers.on_a_gpu",
    "wrappers.own_tensors",
    "wrappers.by_capability",
    "wrappers.asks_the_kernel",
    "wrappers.measures_itself",
    "operators.by_name",
    "operators.differentiable",
    "tuned.scale",
    "tuned.single",
    "faults.caught",
)
FAULTS = {
    "unknown": "NameError('offset is not defined')",
    "block": "arange's range must be a power of 2",
    "nested": "AttributeError(\"module 'triton.language' has no attribute 'no_such_function'\")",
    "asserting": "BLOCK must be a multiple of 32",
    "assembly": "ptxas: Unknown modifier '.such'",
    "packed": "number of input elements 32 must be a multiple of the op's packed_element attribute, 3",
    "arguments": "TypeError: dynamic_func() missing 1 required positional argument: 'n'",
    "refused": "ValueError: expected a multiple of 128",
}


def library(folder: Path, tree: Path = PROBED, name: str = "my_kernels") -> Path:
    """A library folder with a package's sources."""
    write_all(folder / "package", package_sources(tree, Package(name)))
    return folder


class Case(NamedTuple):
    way: str
    n: int = 4096
    timed: bool = True

    @property
    def id(self) -> str:
        return f"n{self.n}_{self.way}"


def request(folder: Path, *cases: Case) -> CompileRequest:
    axes = {one.id: {"N": one.n, "way": one.way, "dtype": "bf16"} for one in cases}
    of = {"cases": axes, "timed": {one.id for one in cases if one.timed}}
    return CompileRequest(library=folder, package="my_kernels", card=PROBED / "card.py", **of)


def compiled(asked: CompileRequest, *targets: str, limits: TimeLimits | None = None) -> Compiled:
    return compile_package(asked, targets or TARGETS, limits or TimeLimits())


def place(name: str, file: str = "faults") -> str:
    """Where the package has the mark."""
    lines = (PROBED / "my_kernels" / f"{file}.py").read_text().splitlines()
    return f"my_kernels/{file}.py:{next(at for at, line in enumerate(lines, 1) if line.endswith(f'# fault: {name}'))}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def made(built: Path) -> Compiled:
    cases = [
        *map(Case, WRAPPERS),
        *(Case(f"faults.{name}", 200, timed=False) for name in FAULTS),
        *(Case("tuned.scale", n, timed=False) for n in range(200, 216)),
        Case("plain.scale", 17, timed=False),
    ]
    return compiled(request(built, *cases))


def of(made: Compiled, way: str, target: str = "sm_80") -> dict[str, str | None]:
    """The kernels that a wrapper needed first, and their configurations."""
    kernels = [one for one in made.kernels if one.target == target]
    return {one.name: one.config for one in kernels if one.case.partition("_")[2] == way}


def test_every_wrapper_runs_as_on_a_gpu_of_its_target(made: Compiled) -> None:
    """Each target has a process: the package keeps what it heard of the capability when it was imported."""
    assert [one for one in made.skipped if "faults" not in one] == []
    assert "n4096_faults.caught" not in made.skipped
    assert "hopper_kernel" not in of(made, "wrappers.by_capability", "sm_80")
    assert "hopper_kernel" in of(made, "wrappers.by_capability", "sm_90")
    assert made.operators == {"probed_lib::copied", "probed_ops::scale", "probed_ops::traced"}
    assert len(of(made, "operators.by_name")) == 3


def test_kernels_are_named_by_the_case_that_needs_another_one_and_by_configuration(built: Path, made: Compiled) -> None:
    twice = "scale_kernel at n4096_plain.twice"
    assert (list(of(made, "plain.scale")), list(of(made, "plain.twice"))) == (["scale_kernel"], [twice, f"{twice} #2"])
    configs = ("BLOCK=128, warps=2, stages=3", "BLOCK=4096, warps=8, stages=3")
    assert of(made, "tuned.scale") == {f"tuned_kernel[{config}]": config for config in configs}
    assert of(made, "tuned.single") == {"single_kernel": None}
    of_timed = {one.entry for one in made.kernels}
    fuzzed = [path.stem for path in (built / "cache").glob("*/*.cubin") if path.parent.name not in of_timed]
    assert fuzzed.count("scale_kernel") == len(TARGETS), "of n17_plain.scale"
    assert 0 < fuzzed.count("tuned_kernel") <= 4 * len(TARGETS)  # a multiple of 16, of 8, or of neither
    assert not list(built.rglob("__pycache__"))


def test_errors_of_fuzzed_cases_leave_the_rest(made: Compiled) -> None:
    skipped = {name.partition("faults.")[2]: why for name, why in made.skipped.items()}
    files = {"nested": "helpers"}
    assert skipped == {name: f"{place(name, files.get(name, 'faults'))}: {text}" for name, text in FAULTS.items()}


USE = """
import sys
from pathlib import Path
from kernelgate.bench.kernel import loading
from kernelgate.bench.kernel.triton_compile import pretend
import torch
from triton.runtime.jit import JITFunction

folder, side, way, n = sys.argv[1:]
pretend((9, 0), loading.alias_of("my_kernels", side))
launch = JITFunction.run
JITFunction.run = lambda kernel, *args, grid, warmup, **kwargs: launch(kernel, *args, grid=grid, warmup=True, **kwargs)
ops = loading.load_package(Path(folder), "my_kernels", side)
module, function = way.split(".")
x = torch.randn(int(n) + 8, dtype=torch.bfloat16)[8:]
getattr(getattr(ops, module), function)(x, torch.empty_like(x))
"""


def use(folder: Path, cache: Path, way: str, n: int = 4096, side: str = "head") -> None:
    """A process that looks kernels up as the one that measures does."""
    words = [sys.executable, "-P", "-c", USE, str(folder / "package"), side, way, str(n)]
    subprocess.run(words, env={**child_environment(), "TRITON_CACHE_DIR": str(cache)}, check=True)


def test_a_measuring_process_finds_what_was_compiled(built: Path, made: Compiled, tmp_path: Path) -> None:
    """Elsewhere, under another name, with other tensors."""
    assert made.kernels
    copy = library(tmp_path / "library")
    used = fill(tmp_path / "used", [built / "cache"])
    use(copy, tmp_path / "used", "plain.twice", side="base")
    assert used() == ()
    use(copy, tmp_path / "used", "plain.scale", 1)
    assert used() == ("scale_kernel",), "a kind of arguments that no case had"


def test_an_error_in_a_timed_kernel(tmp_path: Path) -> None:
    """At the line of the function that it is in, for the first target that has it."""
    with pytest.raises(CompileError) as caught:
        compiled(request(library(tmp_path), Case("plain.scale"), Case("faults.nested")), "sm_90")
    assert caught.value.first == f"{place('nested', 'helpers')}: {FAULTS['nested']}"
    assert caught.value.target == "sm_90"


def test_a_call_that_ends_its_process(tmp_path: Path) -> None:
    """It may be right on a GPU."""
    fuzzed = Case("plain.scale", 17, timed=False)
    cases = [Case("plain.scale"), Case("faults.killed"), Case("plain.twice"), fuzzed]
    made = compiled(request(library(tmp_path), *cases), "sm_90")
    assert [one.name for one in made.kernels] == ["scale_kernel"]
    why = f"{place('killed')}: the process that made this call was killed by SIGABRT"
    assert made.skipped == dict.fromkeys(("n4096_faults.killed", "n4096_plain.twice", "n17_plain.scale"), why)
    assert made.operators == {"probed_lib::copied", "probed_ops::scale", "probed_ops::traced"}


def test_a_package_that_cannot_be_imported(tmp_path: Path) -> None:
    (tmp_path / "tree" / "my_kernels").mkdir(parents=True)
    (tmp_path / "tree" / "my_kernels" / "__init__.py").write_text("import nonesuch\n")
    with pytest.raises(CompileError) as caught:
        compiled(request(library(tmp_path, tmp_path / "tree"), Case("plain.scale")), "sm_90")
    assert caught.value.first.startswith("my_kernels/__init__.py:1: ModuleNotFoundError: No module named 'nonesuch'")
    assert "if nonesuch is of another project, install it in the Python that compiles" in caught.value.first
    for own in ("from my_kernels import nonesuch\nimport my_kernels.none", "from .nonesuch import scale"):
        (tmp_path / "tree" / "my_kernels" / "__init__.py").write_text(own)
        with pytest.raises(CompileError) as caught:
            compiled(request(library(tmp_path / own[-5:], tmp_path / "tree"), Case("plain.scale")), "sm_90")
        assert "install" not in caught.value.first, "what the package itself lacks nobody else has"


def test_a_wrapper_that_is_gone_is_named_as_the_package_has_it(tmp_path: Path) -> None:
    [(_, said)] = compiled(request(library(tmp_path), Case("plain.gone")), "sm_90").skipped.items()
    assert said.endswith("AttributeError: module 'my_kernels.plain' has no attribute 'gone'")


def test_what_needs_a_real_gpu_or_has_no_triton_is_no_error(tmp_path: Path) -> None:
    def built_of(name: str, code: str) -> Compiled:
        (tmp_path / name).mkdir()
        (tmp_path / name / "my_kernels.py").write_text(code)
        return compiled(request(library(tmp_path / f"{name}.library", tmp_path / name), Case("plain.scale")))

    made = built_of("gpu", "import torch\nraise RuntimeError('no driver\\nfound')\n")
    assert made == Compiled(skipped={"n4096_plain.scale": "my_kernels.py:2: RuntimeError: no driver"})
    assert built_of("torch", "class plain:\n    def scale(x, out):\n        raise SystemExit\n") == Compiled()
    assert triton_build.facts(tmp_path / "cache", ()).missing == "no Triton kernel was compiled for a timed case"


def test_the_time_limit(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"my_kernels took longer to compile than 0.2 s"):
        compiled(request(library(tmp_path), Case("plain.scale")), limits=replace(TimeLimits(), total_s=0.2))


def test_two_builds_are_the_same_bytes(
    built: Path, made: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the sources were, whatever time it took, and however many processes shared the cases."""
    monkeypatch.setattr(triton_build, "CORES_A_SHARE", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    again = library(tmp_path / "somewhere" / "else")
    timed = {one.case.partition("_")[2] for one in made.kernels}
    second = compiled(request(again, *map(Case, sorted(timed, key=WRAPPERS.index))))
    entries = [path for path in (again / "cache").rglob("*") if path.is_file()]
    assert any(path.suffix == ".cubin" for path in entries)
    for path in entries:
        assert path.read_bytes() == (built / path.relative_to(again)).read_bytes()
        assert str(tmp_path).encode() not in path.read_bytes()
    assert (second.kernels, second.launched) == (made.kernels, made.launched)


def test_what_is_risky_is_compiled_for_once_of_each_kind() -> None:
    card = registered.facts(registered.ROOT / "tests/repositories/swiglu/.ci/kernels/swiglu.py")
    asked = triton_build.cases(card)
    own = {trial.id for trial in fuzz_trials.trials(triton_build.FUZZ_SEED, card, "cuda")}
    risky = [axes["way"] for name, axes in asked["cases"].items() if name not in asked["timed"] and name not in own]
    assert 0 < len(risky) <= triton_build.RISKY
    assert risky.count("offset") == 2, "where nothing divides the sizes, and where wide loads do"
    assert {*risky} <= {*LAYOUTS, "plain", "repeat", "two-streams"}, "nothing huge"


FOLLOWED = """
import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at))


@triton.jit
def square_kernel(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) * tl.load(x + at))


def scale(x, out):
    scale_kernel[(x.numel() // 128,)](x, out, 128)


def square(x, out):
    square_kernel[(x.numel() // 128,)](x, out, 128)


def by_value(x, out):
    scale_kernel[(int(x.sum()) + 1,)](x, out, 128)


def by_shape(x, out):
    scale_kernel[(1 + torch.nonzero(x).shape[0],)](x, out, 128)


def by_multiprocessors(x, out):
    scale_kernel[(torch.cuda.get_device_properties(0).multi_processor_count,)](x, out, 128)


def by_capability(x, out):
    scale_kernel[(torch.cuda.get_device_properties(0).major,)](x, out, 128)
"""


def code(folder: Path, source: str, *ways: str) -> dict[str, str]:
    """By function, the digest of the machine code that its call launches on sm_90."""
    tree = folder / "tree"
    (tree / "my_kernels").mkdir(parents=True)
    (tree / "my_kernels/__init__.py").write_text("from . import own\n")
    (tree / "my_kernels/own.py").write_text(source)
    made = compiled(request(library(folder / "library", tree), *(Case(f"own.{way}") for way in ways)), "sm_90")
    found = triton_build._code(folder / "library/cache", made).get("sm_90", {})
    return {case_.partition(".")[2]: digest for case_, digest in found.items()}


def test_the_machine_code_that_each_case_launches_is_known(tmp_path: Path) -> None:
    base = code(tmp_path / "base", FOLLOWED, "scale", "square", "by_capability")
    assert base.keys() == {"scale", "square", "by_capability"}
    assert base["scale"] != base["square"]
    moved = FOLLOWED.replace("    at = ", "    # a comment\n    at = ")
    assert code(tmp_path / "moved", moved, *base) == base
    head = code(tmp_path / "head", FOLLOWED.replace("load(x + at) * tl", "load(x + at) + tl"), *base)
    assert {way for way in base if base[way] != head[way]} == {"square"}


@pytest.mark.parametrize("way", ["by_value", "by_shape", "by_multiprocessors"])
def test_what_depends_on_more_than_the_build_sees_is_not_known_from_there_on(tmp_path: Path, way: str) -> None:
    assert code(tmp_path, FOLLOWED, "scale", way, "square").keys() == {"scale"}


def test_where_there_is_a_driver_what_the_c_compiler_makes_for_triton_comes_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each of a measurement's processes runs the compiler before its first launch."""
    driver = tmp_path / "driver"
    driver.mkdir()
    subprocess.run(["gcc", "-shared", "-o", driver / "libcuda.so.1", "-x", "c", os.devnull], check=True)
    made: dict[str, dict[str, bytes]] = {}
    monkeypatch.setenv("TRITON_LIBCUDA_PATH", str(driver))
    for name in ("once", "again"):
        compiled(request(library(tmp_path / name), Case("plain.scale")), "sm_90")
        helpers = (tmp_path / name / "cache").glob("*/*.so")
        made[name] = {path.name.partition(".")[0]: path.read_bytes() for path in helpers}
    assert list(made["once"]) == ["cuda_utils"]
    assert made["once"] == made["again"], "the same bytes for every build"
