"""What is written down about the machine, and what torch computes float32 with, whatever a card says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel import loading
from kernelgate.bench.system import environment
from kernelgate.bench.system.worker import worker_pool
from kernelgate.bench.timing import verifier
from tests.bench import driver
from tests.miniature import SCALE_CARD, write

SIZES = {"total_memory": 24 << 30, "multi_processor_count": 58, "L2_cache_size": 48 << 20}
PROPERTIES = SimpleNamespace(name="NVIDIA L4", major=8, minor=9, uuid="0", **SIZES)


def test_a_cpu_is_described_by_the_kernel(tmp_path: Path) -> None:
    sizes = enumerate(("48K", "32K", "1024K", "32768K"))
    caches = {f"sys/devices/system/cpu/cpu0/cache/index{index}/size": f"{size}\n" for index, size in sizes}
    cpus = "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\n\nprocessor\t: 1\n"
    write(tmp_path, {"proc/cpuinfo": cpus, "proc/meminfo": "MemTotal:       2048 kB\nMemFree: 1 kB\n", **caches})
    found = environment.cpu(tmp_path)
    assert (found.name, found.memory_bytes, found.l2_bytes) == ("Some CPU @ 3 GHz", 2048 * 1024, 32 << 20)
    assert found.sm_count
    assert found.compute_capability is found.uuid is found.driver is None


def test_a_torch_that_does_not_start_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch.so: cannot open shared object file')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(KernelgateError, match=r"^torch does not start here: .*cannot open shared object file$"):
        environment.describe()


def test_the_driver_adds_what_torch_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    modes = {"nvmlDeviceGetEccMode": lambda _: [1, 0], "nvmlDeviceGetMigMode": lambda _: [0, 1]}
    driver.install(monkeypatch, nvmlDeviceGetEnforcedPowerLimit=lambda _: 72_500, **modes)
    found = environment.gpu(PROPERTIES)
    assert (found.name, found.compute_capability, found.uuid, found.sm_count) == ("NVIDIA L4", "8.9", "GPU-0", 58)
    assert (found.driver, found.power_limit_w, found.max_sm_mhz, found.max_memory_mhz) == ("580.1", 72.5, 1980, 3201)
    assert (found.ecc, found.mig, found.pcie) == (True, False, "gen5 x16")


def test_differences_are_named() -> None:
    one = record.Environment(device=record.Device(name="NVIDIA L4", driver="570"), torch="2.11.0", host="a")
    two = record.Environment(device=record.Device(name="NVIDIA L4", driver="580"), torch="2.13.0", host="a")
    assert environment.differences(one, one) == ()
    assert environment.differences(one, two) == ("driver 570, now 580", "torch 2.11.0, now 2.13.0")


def in_the_old_way() -> None:
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True


def in_the_new_way() -> None:
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    torch.backends.cudnn.conv.fp32_precision = "tf32"


def with_repeating_bits() -> None:
    torch.use_deterministic_algorithms(True)


WAYS = (in_the_old_way, in_the_new_way, with_repeating_bits)


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    environment.pin_numerics()


@pytest.mark.slow
@pytest.mark.parametrize("otherwise", WAYS)
def test_pinned_from_whatever_was_set(otherwise: Callable[[], None]) -> None:
    environment.pin_numerics()
    assert environment.changed_numerics() is None
    otherwise()
    words = environment.changed_numerics()
    assert words is not None
    assert "tf32" in words or ", deterministic" in words
    environment.pin_numerics()
    assert environment.changed_numerics() is None
    assert torch.get_float32_matmul_precision() == "highest"  # torch refuses to say it of a mixture of both ways
    assert not torch.backends.cuda.matmul.allow_tf32
    assert not torch.backends.cudnn.allow_tf32


def test_a_card_that_sets_torch_otherwise_is_run_as_all_are(tmp_path: Path) -> None:
    line = "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True\n"
    (tmp_path / "scale.py").write_text(line + SCALE_CARD, encoding="utf-8")
    loading.load(tmp_path / "scale.py")
    assert environment.changed_numerics() is None


def test_a_reference_is_not_timed_where_a_kernels_package_changes_it() -> None:
    in_the_old_way()
    why = verifier.without_reference(None, None, {})  # type: ignore[arg-type]
    assert why is not None
    assert why.startswith("the code of base or head sets torch to other numerics than references are timed with: ")
    assert "products in tf32, convolutions in tf32" in why


@pytest.mark.slow
def test_a_fresh_process_describes_this_machine_and_what_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    with worker_pool() as workers:
        workers.prepare({environment.DESCRIBES: 1})  # it may have the answer before anybody asks
        found = environment.describe(workers)
        assert len(workers.started) == 1
    assert (found.torch, environment.kind(found)) == (torch.__version__, "cpu")
    assert found.python
    assert found.os
    assert found.numerics is not None
    assert found.numerics.words == (
        "float32 products in ieee, convolutions in ieee, not deterministic, CUBLAS_WORKSPACE_CONFIG=:4096:8, "
        "NVIDIA_TF32_OVERRIDE=0"
    )
