"""A package's files, and a folder that is like Triton's cache: no Triton, no GPU."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kernelgate.bench.build.sources import Package, package_sources
from kernelgate.bench.core.errors import NoKernelError
from kernelgate.bench.kernel import triton_build
from kernelgate.bench.kernel.triton_build import PackageKernel
from kernelgate.bench.kernel.triton_runtime import fill
from tests.bench.build.test_machine_code import compiled


def write(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(path.encode())


# Sources --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", ["", "src/"])
def test_a_package_is_all_its_files(tmp_path: Path, root: str) -> None:
    kept = ("ops/__init__.py", "ops/deep/er/kernel.py", "ops/table.json", "ops/py.typed")
    write(tmp_path, *(root + path for path in kept))
    write(
        tmp_path, *(f"{root}ops/{path}" for path in ("__pycache__/a.pyc", "old.pyc", "_C.so", ".hidden", ".git/x.py"))
    )
    write(tmp_path, "other.py", "tests/ops/__init__.py", f"{root}ops_more/__init__.py")
    assert package_sources(tmp_path, Package("ops")) == {path: (root + path).encode() for path in sorted(kept)}


def test_where_a_package_is_looked_for(tmp_path: Path) -> None:
    with pytest.raises(NoKernelError) as caught:
        package_sources(tmp_path, Package("ops"))
    places = "ops/ with Python files, ops.py, src/ops/ and src/ops.py"
    assert str(caught.value) == f"{tmp_path} has no package ops: looked for {places}"
    with pytest.raises(NoKernelError, match=r"Package\('a/../b'\): this is no name of a package or module"):
        package_sources(tmp_path, Package("a/../b"))


# The cache ------------------------------------------------------------------------------------------------------------


def kernel(entry: str, name: str = "scale", **changed: object) -> PackageKernel:
    values = {"name": name, "function": "scale", "target": "sm_90", "entry": entry, "case": "n1", "timed": True}
    return PackageKernel.model_validate({**values, "config": None, "shared_bytes": 4096, "threads": 256, **changed})


def cache(folder: Path, *entries: str, content: str = "") -> Path:
    """As Triton leaves it, for kernels called scale."""
    for entry in entries:
        write(folder / entry, "scale.cubin", "scale.json")
        (folder / entry / "scale.cubin").write_text(content or entry)
        names = ("scale.cubin", "scale.json")
        listing = {"child_paths": {name: str(folder / entry / name) for name in names}}
        (folder / entry / "__grp__scale.json").write_text(json.dumps(listing))
    return folder


def test_a_finished_cache_can_be_moved_and_installed(tmp_path: Path) -> None:
    built = cache(tmp_path / "built", "AAA", "BBB")
    triton_build.finish(built)
    assert not [path for path in built.rglob("*") if path.is_file() and str(tmp_path) in path.read_text()]
    moved = built.rename(tmp_path / "moved")
    used = fill(tmp_path / "used", [moved])
    assert {path.relative_to(tmp_path).as_posix() for path in used.known} == {
        "used/AAA/scale.cubin",
        "used/BBB/scale.cubin",
    }
    listed = json.loads((tmp_path / "used" / "AAA" / "__grp__scale.json").read_text())["child_paths"]
    assert listed == {name: str(tmp_path / "used" / "AAA" / name) for name in ("scale.cubin", "scale.json")}
    assert "AAA/scale" not in (moved / "AAA" / "__grp__scale.json").read_text()
    write(tmp_path / "used" / "LAUNCHER", "__triton_launcher.so", "cuda_utils.so")
    assert used.compiled() == ()
    cache(tmp_path / "used", "CCC", "DDD")
    assert used.compiled() == ("scale",), "while measuring"


def test_the_first_library_has_the_say(tmp_path: Path) -> None:
    base, head = cache(tmp_path / "base", "AAA", content="base"), cache(tmp_path / "head", "AAA", "BBB", content="head")
    for built in (base, head):
        triton_build.finish(built)
    used = fill(tmp_path / "used", [base, head])
    assert {path.parent.name: path.read_text() for path in used.known} == {
        "AAA": "base",
        "BBB": "head",
    }


# Facts ----------------------------------------------------------------------------------------------------------------


def test_facts_of_the_timed_kernels(tmp_path: Path) -> None:
    """The machine code is that of tests/gpu/kernels/spills.cu."""
    made, _ = compiled("spills", "sm_90", tmp_path)
    entry = cache(tmp_path / "built", "AAA") / "AAA"
    shutil.copy(made, entry / "scale.cubin")
    kernels = [kernel("AAA"), kernel("ZZZ", timed=False), kernel("AAA", "scale[BLOCK=64]", config="BLOCK=64")]
    (found,) = triton_build.facts(entry.parent, kernels).kernels
    assert (found.name, found.target) == ("scale", "sm_90")
    assert (found.dynamic_shared_bytes, found.static_shared_bytes, found.shared_bytes) == (4096, 0, 4096)
    assert found.threads == 256
    assert found.spill_bytes
    assert found.registers
    assert (
        triton_build.facts(entry.parent, kernels[2:]).missing == "@triton.autotune chooses the kernel when it measures"
    )
    (entry / "scale.cubin").write_text("")
    assert "cuobjdump cannot read it" in str(triton_build.facts(entry.parent, kernels).missing)
