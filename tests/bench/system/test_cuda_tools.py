"""Where NVIDIA's tools are looked for, and what is said where one is nowhere."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

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


def packages(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from types import SimpleNamespace

    folder = machine / "packages" / "nvidia"
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: SimpleNamespace(submodule_search_locations=[folder]))
    return folder


def test_the_order_is_path_packages_installers(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = [tool(machine / f"usr/local/{name}/bin/ncu") for name in ("cuda", "cuda-13.0", "cuda-12.8", "cuda-9.2")]
    own = [tool(machine / f"opt/nvidia/nsight-compute/{name}/ncu") for name in ("2025.3.1", "2024.3.2")]
    packaged = [tool(packages(machine, monkeypatch) / f"{name}/bin/ncu") for name in ("cu13", "cu12")]
    on_path = tool(machine / "bin/ncu")
    assert list(cuda_tools.candidates("ncu")) == [on_path, *packaged, *installed, *own]
    assert cuda_tools.find("ncu") == on_path


@pytest.mark.parametrize("name", cuda_tools.TOOLS)
def test_every_tool_is_found_where_its_installer_puts_it(name: str, machine: Path) -> None:
    with pytest.raises(NoDeviceError) as caught:
        cuda_tools.find(name)
    said = str(caught.value)
    assert said.startswith(f"{name}, which ")
    assert "is neither on PATH nor among the Python packages (nvidia/cu*/bin) nor in /usr/local/cuda*/bin" in said
    assert said.endswith(f"; install it: {cuda_tools.TOOLS[name].install}")
    (machine / "usr/local/cuda-13.0/bin" / name).mkdir(parents=True)  # a folder is no tool
    assert list(cuda_tools.candidates(name)) == []
    there = tool(machine / "other/usr/local/cuda/bin" / name)
    assert cuda_tools.find(name, machine / "other") == there
