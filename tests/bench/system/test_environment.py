"""What is written down about the machine."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system import environment
from tests.bench import driver

PROPERTIES = SimpleNamespace(
    name="NVIDIA L4",
    major=8,
    minor=9,
    uuid="0",
    total_memory=24 << 30,
    multi_processor_count=58,
    L2_cache_size=48 << 20,
)


def machine(root: Path) -> None:
    """A CPU as /proc and /sys describe one."""
    (root / "proc").mkdir(parents=True)
    (root / "proc/cpuinfo").write_text("processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\n\nprocessor\t: 1\n")
    (root / "proc/meminfo").write_text("MemTotal:       2048 kB\nMemFree: 1 kB\n")
    for index, size in enumerate(("48K", "32K", "1024K", "32M")):
        folder = root / f"sys/devices/system/cpu/cpu0/cache/index{index}"
        folder.mkdir(parents=True)
        (folder / "size").write_text(f"{size}\n")


def test_a_cpu_is_described_by_the_kernel(tmp_path: Path) -> None:
    machine(tmp_path)
    found = environment.cpu(tmp_path)
    assert (found.name, found.memory_bytes, found.l2_bytes) == ("Some CPU @ 3 GHz", 2048 * 1024, 32 << 20)
    assert found.sm_count
    assert found.compute_capability is found.uuid is found.driver is None


def test_what_the_kernel_does_not_tell_is_null(tmp_path: Path) -> None:
    found = environment.cpu(tmp_path)
    assert found.name
    assert found.memory_bytes is found.l2_bytes is None


def test_a_fresh_process_describes_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    found = environment.describe()
    assert found.torch == torch.__version__
    assert environment.kind(found) == "cpu"
    assert found.python
    assert found.os


def test_a_torch_that_does_not_start_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch.so: cannot open shared object file')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(KernelgateError, match=r"^torch does not start here: .*cannot open shared object file$"):
        environment.describe()


def test_a_gpu_is_known_by_its_compute_capability() -> None:
    gpu = record.Environment(device=record.Device(name="NVIDIA L4", compute_capability="8.9"))
    assert environment.kind(gpu) == "cuda"


def test_the_driver_adds_what_torch_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    driver.install(
        monkeypatch,
        nvmlDeviceGetEnforcedPowerLimit=lambda _: 72_500,
        nvmlDeviceGetEccMode=lambda _: [1, 0],
        nvmlDeviceGetMigMode=lambda _: [0, 1],
        nvmlDeviceGetMaxPcieLinkGeneration=lambda _: 4,
        nvmlDeviceGetMaxPcieLinkWidth=lambda _: 16,
    )
    found = environment._gpu(PROPERTIES)
    assert (found.name, found.compute_capability, found.uuid, found.sm_count) == ("NVIDIA L4", "8.9", "GPU-0", 58)
    assert (found.driver, found.power_limit_w, found.max_sm_mhz, found.max_memory_mhz) == ("580.1", 72.5, 1980, 3201)
    assert (found.ecc, found.mig, found.pcie) == (True, False, "gen4 x16")


def test_what_the_driver_does_not_offer_is_null(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("EnforcedPowerLimit", "EccMode", "MigMode", "MaxPcieLinkGeneration")
    driver.install(monkeypatch, **{f"nvmlDeviceGet{name}": driver.refused for name in names})
    found = environment._gpu(PROPERTIES)
    assert found.driver == "580.1"
    assert found.power_limit_w is found.ecc is found.mig is found.pcie is None
    driver.install(monkeypatch, nvmlInit=driver.refused)
    assert environment._gpu(PROPERTIES).driver is None


def test_a_package_that_is_not_installed_has_no_version() -> None:
    assert environment.package_version("pydantic")
    assert environment.package_version("no-such-package") is None


def test_differences_are_named() -> None:
    one = record.Environment(device=record.Device(name="NVIDIA L4", driver="570"), torch="2.11.0", host="a")
    two = record.Environment(device=record.Device(name="NVIDIA L4", driver="580"), torch="2.13.0", host="a")
    assert environment.differences(one, one) == ()
    assert environment.differences(one, two) == ("driver 570, now 580", "torch 2.11.0, now 2.13.0")
