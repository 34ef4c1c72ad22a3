"""The Python package fa_s512 as `pip install .` lays it out: its files with the library beside them."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

from kernelgate.bench.build.build import export
from kernelgate.bench.kernel.commit import HowToBuild, build_tree
from tests.attention import error_ratio, inputs, reference

ROOT = Path(__file__).parent.parent.parent


def forget_package() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "fa_s512"]:
        del sys.modules[name]


def copy_package(folder: Path) -> Path:
    package = folder / "fa_s512"
    shutil.copytree(ROOT / "csrc" / "fa_s512", package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return package


pytestmark = [pytest.mark.slow, pytest.mark.guards("csrc/", "bench/build/", "bench/kernel/")]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("site")
    export(build_tree(ROOT, HowToBuild(namespace="fa_s512")).built["attention"], copy_package(folder))
    forget_package()
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield importlib.import_module("fa_s512")
    forget_package()


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_attention(package: ModuleType, causal: bool) -> None:
    q, k, v = inputs(2, 3, 70, torch.bfloat16)
    assert error_ratio(package.attention(q, k, v, causal=causal), reference(q, k, v, 0.125, causal)) <= 1
    assert error_ratio(package.attention(q, k, v, scale=-1, causal=causal), reference(q, k, v, -1, causal)) <= 1


@pytest.mark.parametrize("argument", ["q", "v"])
def test_a_gradient_is_refused_rather_than_lost(package: ModuleType, argument: str) -> None:
    tensors = dict(zip("qkv", inputs(1, 1, 4, torch.float32), strict=True))
    tensors[argument].requires_grad_()
    with pytest.raises(RuntimeError, match=r"fa_s512: attention has no backward pass; call it under torch.no_grad\(\)"):
        package.attention(**tensors)
    with torch.no_grad():
        assert not package.attention(**tensors).requires_grad


def test_a_checkout_says_how_to_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "fa_s512"}
    missing = copy_package(tmp_path) / "kernel.so"
    forget_package()
    monkeypatch.syspath_prepend(tmp_path)
    try:
        with pytest.raises(ImportError) as raised:
            importlib.import_module("fa_s512")
    finally:
        forget_package()
        sys.modules.update(loaded)
    assert str(raised.value) == (
        f"fa_s512 is not compiled: {missing} is missing; run `python setup.py build_ext --inplace` in the checkout"
    )
