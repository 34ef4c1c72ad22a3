"""What cuobjdump says of kernels compiled here: no GPU."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from kernelgate.bench.build.toolchain import find as find_toolchain
from kernelgate.bench.errors import KernelgateError, NoDeviceError
from kernelgate.bench.explain import resources
from kernelgate.bench.explain.resources import Tools
from kernelgate.bench.record import Resources

KERNELS = Path(__file__).parents[2] / "gpu" / "kernels"


@pytest.fixture(scope="module")
def tools() -> Tools:
    return resources.find_tools()


def compiled(source: str, target: str, folder: Path) -> tuple[Path, str]:
    """The cubin, and what ptxas said of it."""
    cuda = find_toolchain().cuda
    assert cuda is not None
    cubin = folder / f"{source}.cubin"
    words = [str(cuda.nvcc), "-arch", target, "-O3", "-std=c++17", "-cubin", "-Xptxas=-v", "-o", str(cubin)]
    done = subprocess.run([*words, str(KERNELS / f"{source}.cu")], capture_output=True, text=True, check=True)
    return cubin, done.stdout + done.stderr


@pytest.mark.parametrize("target", ["sm_89", "sm_90"])
def test_spills_are_what_ptxas_says(target: str, tmp_path: Path, tools: Tools) -> None:
    cubin, said = compiled("spills", target, tmp_path)
    (kernel,) = resources.read(cubin, "head", tools)
    assert kernel.kernel == "running_sums"
    assert kernel.target == target
    assert f"{kernel.spill_bytes} bytes spill stores" in said
    assert f"Used {kernel.registers} registers" in said
    assert f"{kernel.stack_bytes} bytes stack frame" in said
    assert kernel.spill_bytes
    assert kernel.instructions["STL"] > 0
    assert kernel.threads == 256


def test_static_shared_memory_and_barriers(tmp_path: Path, tools: Tools) -> None:
    cubin, said = compiled("bank_conflicts", "sm_90", tmp_path)
    (kernel,) = resources.read(cubin, "head", tools)
    assert "4096 bytes smem" in said
    assert kernel.static_shared_bytes == kernel.shared_bytes == 4096
    assert kernel.dynamic_shared_bytes is None
    assert kernel.instructions["BAR"] == 1
    assert kernel.spill_bytes == 0
    assert kernel.occupancy_pct == {}  # the launch alone knows the block's size


def test_tensor_instructions_are_counted(tmp_path: Path, tools: Tools) -> None:
    cubin, _ = compiled("tensor", "sm_89", tmp_path)
    (kernel,) = resources.read(cubin, "head", tools)
    assert kernel.instructions["HMMA"] >= 16
    assert kernel.occupancy_limits == {"L4": "registers"}


def test_dynamic_shared_memory_comes_from_the_tile(tmp_path: Path) -> None:
    assert resources.dynamic_shared(Path(__file__).parents[3] / "csrc") == 48 * 1024
    assert resources.dynamic_shared(tmp_path) is None
    (tmp_path / "fa_s512_tile.h").write_text("using DefaultTile = SomethingElse;")
    assert resources.dynamic_shared(tmp_path) is None


def test_what_is_no_library_is_said_in_a_sentence(tmp_path: Path, tools: Tools) -> None:
    path = tmp_path / "kernel.so"
    path.write_text("no library")
    with pytest.raises(KernelgateError, match=r"kernel\.so: cuobjdump cannot read it: "):
        resources.read(path, "head", tools)


def test_missing_tools_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelgate.bench.explain.resources.shutil.which", lambda *_, **__: None)
    with pytest.raises(NoDeviceError, match="cuobjdump is neither on PATH nor among the Python packages; pip install"):
        resources.find_tools()


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void fa_s512::cuda::attention<fa_s512::cuda::Sm90, (fa_s512::Dtype)1, false>(fa_s512::Arguments, float)",
         "attention<Sm90, 1, false>"),
        ("running_sums(float const*, float*, int)", "running_sums"),
        ("_Z3foo", "_Z3foo"),
    ],
)  # fmt: skip
def test_short_names(name: str, short: str) -> None:
    assert resources._short(name) == short


def test_resources_survive_the_record() -> None:
    one = Resources(side="head", target="sm_89", kernel="k", occupancy_pct={"L4": 25.0}, stack_bytes=8)
    assert Resources.model_validate(json.loads(one.model_dump_json())) == one
