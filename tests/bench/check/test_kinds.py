"""The cards of tests/kinds, for unordered and random results and for backward passes: only right kernels pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.build.library import Library
from kernelgate.bench.check import fuzz
from kernelgate.bench.kernel import card_check
from kernelgate.bench.kernel.cards import CardFacts
from tests import registered
from tests.bench.machine import CPU

pytestmark = pytest.mark.usefixtures("in_process")

KINDS = registered.ROOT / "tests/kinds/.ci/kernels"
KERNELS = {
    "argmax": """
@operator("argmax(Tensor x, Tensor(a!) out) -> ()")
def argmax(x, out):
    out.copy_(x.shape[1] - 1 - x.flip(1).argmax(1))  # the last of equal ones
""",
    "top_k": """
@operator("top_k(Tensor x, Tensor(a!) values, Tensor(b!) indices) -> ()")
def top_k(x, values, indices):
    best, at = x.flip(1).topk(values.shape[1])
    values.copy_(best)
    indices.copy_(x.shape[1] - 1 - at)
""",
    "dropout": """
@operator("dropout(Tensor x, int seed, Tensor(a!) out, Tensor(b!) mask) -> ()")
def dropout(x, seed, out, mask):
    mask.copy_(torch.rand(x.shape, generator=torch.Generator().manual_seed(seed)) < 0.5)
    out.copy_(torch.where(mask, 2 * x, 0))
""",
    "rms_norm_backward": """
@operator("rms_norm_backward(Tensor(a!) dx, Tensor(b!) dw, Tensor x, Tensor w, Tensor dy, Tensor rstd) -> ()")
def rms_norm_backward(dx, dw, x, w, dy, rstd):
    r, g = rstd.double()[:, None], dy.double() * w.double()
    normal = x.double() * r
    dx.copy_(r * (g - normal * (g * normal).mean(1, keepdim=True)))
    dw.copy_((dy.double() * normal).sum(0))
""",
}
FAULTS = {
    "an index beside the maximum": ("argmax", "1 - x.flip", "2 - x.flip"),
    "one index for all": ("top_k", "1 - at", "1 - at[:, :1]"),
    "too many kept": ("dropout", "< 0.5", "< 0.9"),
    "what was saved is ignored": ("rms_norm_backward", "rstd.double()", "torch.ones_like(rstd).double()"),
}
IDS = tuple(f"fuzz_{number:02}" for number in range(8))
SPECIAL = "m9_n64{}_fp32_distribution-special_way-plain"  # many zeros, and ones: ties
SHARED = "m9_n64{}_fp32_distribution-normal_way-shared-inputs"


def made(folder: Path, name: str, kernel: str) -> tuple[Library, CardFacts]:
    return registered.build(folder / "library", folder.name, kernel, name), registered.facts(KINDS / f"{name}.py")


@pytest.mark.parametrize("name", KERNELS)
def test_a_documented_card_is_right_and_so_is_its_kernel(name: str, tmp_path: Path) -> None:
    library, card = made(tmp_path, name, KERNELS[name])
    assert card_check.check(library, card).mistakes == ()
    more = [SPECIAL, *([SHARED] if name == "rms_norm_backward" else [])]
    done = fuzz.run(library, card, 3, CPU, [*IDS, *(one.format("_k3" if name == "top_k" else "") for one in more)])
    assert [one.message for one in done.results if not one.passed] == []
    assert (done.status, done.reason) == ("passed", None)


@pytest.mark.parametrize(("name", "old", "new"), FAULTS.values(), ids=FAULTS)
def test_a_wrong_kernel_of_a_documented_card_is_caught(name: str, old: str, new: str, tmp_path: Path) -> None:
    assert KERNELS[name].count(old) == 1
    library, card = made(tmp_path, name, KERNELS[name].replace(old, new))
    done = fuzz.run(library, card, 3, CPU, IDS)
    assert (done.status, done.reason) == ("failed", None)
