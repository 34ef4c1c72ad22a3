"""@triton.autotune without a GPU: launches are noted, and a made-up clock says how long each takes."""

from __future__ import annotations

import gc
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import triton
import triton.language as tl
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.autotuner import Autotuner
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITFunction

from kernelgate.bench.build.sources import Package, package_sources
from kernelgate.bench.core.errors import NoKernelError
from kernelgate.bench.kernel import triton_build, triton_runtime
from kernelgate.bench.kernel.triton_build import PackageKernel
from kernelgate.bench.kernel.triton_runtime import fill
from tests.bench.build.test_machine_code import compiled

CONFIGS = [
    triton.Config({"block": 64}, num_warps=2),
    triton.Config({"block": 128}, num_warps=4, num_stages=5),
    triton.Config({"block": 256}, num_warps=8, num_ctas=2, maxnreg=64),
]
Launches = list[dict[str, Any]]


def timed(kernel_call: Callable[[], None], quantiles: Any) -> list[float]:
    """The smaller the block, the slower, whatever is launched."""
    kernel_call()
    return [1.0 / Launched.last["block"]] * len(quantiles)


class Launched:
    last: dict[str, Any]


@triton.autotune(configs=CONFIGS, key=["n"], do_bench=timed)
@triton.jit
def scale(x, n, block: tl.constexpr):
    tl.store(x + tl.arange(0, block), n)


@triton.autotune(configs=CONFIGS[:1], key=["n"], do_bench=timed)
@triton.heuristics({"even": lambda arguments: arguments["n"] % arguments["block"] == 0})
@triton.jit
def single(x, n, block: tl.constexpr, even: tl.constexpr):
    tl.store(x + tl.arange(0, block), n + even)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Iterator[Launches]:
    made: Launches = []

    def run(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> str:  # noqa: ARG001 - as Triton's
        Launched.last = {"kernel": kernel.__name__, "n": args[1], **kwargs}
        made.append(Launched.last)
        return f"launched {kwargs['block']}"

    monkeypatch.setattr(JITFunction, "run", run)
    yield made
    for kernel in (scale, single):
        kernel.cache.clear()
        vars(kernel).pop("best_config", None)


def blocks(made: Launches) -> list[int]:
    return [one["block"] for one in made]


HERE = SimpleNamespace(__name__=__name__)
"""This module, as one of a package."""


def test_what_was_chosen(launches: Launches) -> None:
    gc.unfreeze()  # another test of this process may have timed something
    known = triton_runtime.tuners()
    assert [one for one in known if one in (scale, single)] == [scale], "the other has no choice"
    assert triton_runtime.choices(known, HERE) == {}
    scale[(1,)](None, 100)
    single[(1,)](None, 100)
    assert blocks(launches) == [64, 128, 256, 256, 64]
    [(at, choice)] = triton_runtime.choices(known, HERE).items()
    assert (at[0], choice) == ("scale", "block=256, warps=8, stages=3, ctas=2, maxnreg=64")
    gc.freeze()
    try:
        assert scale not in triton_runtime.tuners(), "so whoever freezes the garbage must know them before"
    finally:
        gc.unfreeze()


def test_every_configuration(launches: Launches) -> None:
    told: list[str | None] = []
    with triton_runtime.every_config(told.append):
        scale[(1,)](None, 100)
        single[(1,)](None, 128)
    assert blocks(launches) == [64, 128, 256, 64]
    assert launches[-1]["even"] is True
    assert told == [*map(triton_runtime.describe, CONFIGS), None, None, None]
    scale[(1,)](None, 100)
    assert len(launches) == 8  # it chooses again


def test_processes_begin_with_other_configurations(launches: Launches) -> None:
    with triton_runtime.every_config(lambda _: None, 0.5):
        scale[(1,)](None, 100)
    assert blocks(launches) == [128, 256, 64]


def refusing(monkeypatch: pytest.MonkeyPatch, errors: dict[int, Exception]) -> None:
    """Launches with these blocks fail."""
    run = JITFunction.run

    def refuse(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs["block"] in errors:
            raise errors[kwargs["block"]]
        return run(kernel, *args, **kwargs)

    monkeypatch.setattr(JITFunction, "run", refuse)


def test_an_impossible_configuration_is_left_out(launches: Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = OutOfResources(1, 0, "shared memory"), CompileTimeAssertionFailure(None, None, "no")  # type: ignore[arg-type]
    refusing(monkeypatch, {64: first, 128: second})
    with triton_runtime.every_config(lambda _: None):
        assert scale[(1,)](None, 100) == "launched 256"
    assert blocks(launches) == [256]
    refusing(monkeypatch, {256: OutOfResources(2, 0, "threads")})
    with triton_runtime.every_config(lambda _: None), pytest.raises(OutOfResources) as caught:
        scale[(1,)](None, 100)
    assert caught.value is first


def test_one_configuration_by_the_case_which_gives_way_where_it_cannot_run(
    launches: Launches, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [{"n": number, "dtype": "fp16"} for number in range(32)]
    ways = [{**case, "distribution": "large", "way": "offset"} for case in cases]
    for case in cases + ways:
        with triton_runtime.one_config(case):
            assert str(scale[(1,)](None, 100)).startswith("launched")
    ran = blocks(launches)
    assert (ran[:32], set(ran), scale.cache) == (ran[32:], {64, 128, 256}, {})
    impossible = OutOfResources(1, 0, "shared memory")
    refusing(monkeypatch, {64: impossible, 128: impossible})
    for number in range(8):
        with triton_runtime.one_config({"n": number}):
            assert scale[(1,)](None, 100) == "launched 256"
    refusing(monkeypatch, {256: impossible})
    with triton_runtime.one_config({"n": 9}), pytest.raises(OutOfResources):
        scale[(1,)](None, 100)


class Database:
    def __getitem__(self, key: object) -> object:
        raise KeyError(key)


class OwnTuner(Autotuner):
    """As FlagGems' LibTuner: it keeps configurations in a database, and runs by itself."""

    def run(self, *args: Any, **kwargs: Any) -> Any:
        self.cache, self.best_config = Database(), self.configs[1]
        return self.fn.run(*args, **kwargs, **self.best_config.all_kwargs())


def test_a_subclass_of_the_tuner_is_checked_with_all_configurations_too(launches: Launches) -> None:
    own = OwnTuner(scale.fn, scale.arg_names, CONFIGS, ["n"], None, None, do_bench=timed)
    for number in range(32):
        with triton_runtime.one_config({"n": number}):
            own[(1,)](None, 100)
    assert set(blocks(launches)) == {64, 128, 256}
    launches.clear()
    own[(1,)](None, 100)
    assert blocks(launches) == [128], "outside of checks it decides itself"
    assert list(triton_runtime.choices([own], HERE).values()) == ["block=128, warps=4, stages=5"]


# A package's files, and a folder that is like Triton's cache ----------------------------------------------------------


def write(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(path.encode())


@pytest.mark.parametrize("root", ["", "src/"])
def test_a_package_is_all_its_files(tmp_path: Path, root: str) -> None:
    kept = ("ops/__init__.py", "ops/deep/er/kernel.py", "ops/table.json", "ops/py.typed")
    write(tmp_path, *(root + path for path in kept))
    no_sources = (f"{root}ops/{path}" for path in ("__pycache__/a.pyc", "old.pyc", "_C.so", ".hidden", ".git/x.py"))
    write(tmp_path, *no_sources, "other.py", "tests/ops/__init__.py", f"{root}ops_more/__init__.py")
    assert package_sources(tmp_path, Package("ops")) == {path: (root + path).encode() for path in sorted(kept)}


def test_where_a_package_is_looked_for(tmp_path: Path) -> None:
    with pytest.raises(NoKernelError) as caught:
        package_sources(tmp_path, Package("ops"))
    places = "ops/ with Python files, ops.py, src/ops/ and src/ops.py"
    assert str(caught.value) == f"{tmp_path} has no package ops: looked for {places}"
    with pytest.raises(NoKernelError, match=r"Package\('a/../b'\): this is no name of a module"):
        package_sources(tmp_path, Package("a/../b"))


def kernel(entry: str, name: str = "scale", **changed: object) -> PackageKernel:
    values = {"name": name, "target": "sm_90", "entry": entry, "case": "n1", "config": None}
    return PackageKernel.model_validate({**values, **changed})


def cache(folder: Path, *entries: str, content: str = "") -> Path:
    """As Triton leaves it, for kernels called scale."""
    for entry in entries:
        write(folder / entry, "scale.cubin", "scale.json")
        (folder / entry / "scale.cubin").write_text(content or entry)
        (folder / entry / "scale.json").write_text(json.dumps({"shared": 4096, "num_warps": 8}))
        names = ("scale.cubin", "scale.json")
        listing = {"child_paths": {name: str(folder / entry / name) for name in names}}
        (folder / entry / "__grp__scale.json").write_text(json.dumps(listing))
    return folder


def test_a_cache_can_be_moved_and_installed(tmp_path: Path) -> None:
    moved = cache(tmp_path / "built", "AAA", "BBB").rename(tmp_path / "moved")
    used = fill(tmp_path / "used", [moved])
    assert {path.relative_to(tmp_path).as_posix() for path in (tmp_path / "used").glob("*/*.cubin")} == {
        f"used/{entry}/scale.cubin" for entry in ("AAA", "BBB")
    }
    listed = json.loads((tmp_path / "used" / "AAA" / "__grp__scale.json").read_text())["child_paths"]
    assert listed == {name: str(tmp_path / "used" / "AAA" / name) for name in ("scale.cubin", "scale.json")}
    write(tmp_path / "used" / "LAUNCHER", "__triton_launcher.so", "cuda_utils.so")
    assert used() == ()
    cache(tmp_path / "used", "CCC", "DDD")
    assert used() == ("scale",), "while measuring"


def test_the_first_library_has_the_say(tmp_path: Path) -> None:
    base, head = cache(tmp_path / "base", "AAA", content="base"), cache(tmp_path / "head", "AAA", "BBB", content="head")
    fill(tmp_path / "used", [base, head])
    held = {path.parent.name: path.read_text() for path in (tmp_path / "used").glob("*/*.cubin")}
    assert held == {"AAA": "base", "BBB": "head"}


@pytest.mark.slow
def test_facts_of_the_timed_kernels(tmp_path: Path) -> None:
    """The machine code is that of tests/gpu/kernels/spills.cu."""
    made, _ = compiled("spills", "sm_90", tmp_path)
    entry = cache(tmp_path / "built", "AAA") / "AAA"
    shutil.copy(made, entry / "scale.cubin")
    kernels = [kernel("AAA"), kernel("AAA", "scale[BLOCK=64]", config="BLOCK=64")]
    (found,) = triton_build.facts(entry.parent, kernels).kernels
    assert (found.name, found.target) == ("scale", "sm_90")
    assert (found.dynamic_shared_bytes, found.static_shared_bytes, found.shared_bytes) == (4096, 0, 4096)
    assert found.threads == 256
    assert found.spill_bytes
    assert found.registers
    tuned = triton_build.facts(entry.parent, kernels[1:])
    assert tuned.missing == "@triton.autotune chooses the kernel when it measures"
    (entry / "scale.cubin").write_text("")
    assert "cuobjdump cannot read it" in str(triton_build.facts(entry.parent, kernels).missing)
