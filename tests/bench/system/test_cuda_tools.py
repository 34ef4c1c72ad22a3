"""Where NVIDIA's tools are looked for, and what is said where one is nowhere."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelgate.bench.core.errors import NoDeviceError
from kernelgate.bench.system import cuda_tools


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing of NVIDIA's."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(cuda_tools, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "packages")])
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    return tmp_path


def tool(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return path


def test_the_order_is_path_packages_installers(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = [tool(machine / f"usr/local/{name}/bin/ncu") for name in ("cuda", "cuda-13.0", "cuda-12.8", "cuda-9.2")]
    own = [tool(machine / f"opt/nvidia/nsight-compute/{name}/ncu") for name in ("2025.3.1", "2024.3.2")]
    found = SimpleNamespace(submodule_search_locations=[machine / "packages/nvidia"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: found)
    packaged = [tool(machine / f"packages/nvidia/{name}/bin/ncu") for name in ("cu13", "cu12")]
    on_path = tool(machine / "bin/ncu")
    assert list(cuda_tools.candidates("ncu")) == [on_path, *packaged, *installed, *own]
    assert cuda_tools.find("ncu") == on_path


def test_what_is_nowhere_is_said_with_what_to_install(machine: Path) -> None:
    (machine / "usr/local/cuda-13.0/bin/nvcc").mkdir(parents=True)  # a folder is no tool
    with pytest.raises(NoDeviceError) as caught:
        cuda_tools.find("nvcc")
    assert str(caught.value) == (
        "nvcc, which compiles CUDA, is neither on PATH nor among the Python packages (nvidia/cu*/bin) nor in "
        f"/usr/local/cuda*/bin; install it: {cuda_tools.TOOLS['nvcc'].install}"
    )
