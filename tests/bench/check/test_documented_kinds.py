"""The cards of docs/cards.md for unordered and random results and for backward passes: only right kernels pass."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelgate.bench.build.library import Library
from kernelgate.bench.check import fuzz
from kernelgate.bench.kernel import card_check
from kernelgate.bench.kernel.cards import CardFacts
from tests import registered
from tests.bench.machine import CPU

pytestmark = pytest.mark.usefixtures("in_process")

PAGE = (registered.ROOT / "docs" / "cards.md").read_text(encoding="utf-8")
X = "def inputs(self, case, draw):\n    return dict(x=draw(case.M, case.N))\n"
FUZZ = 'fuzz = dict(M=range(1, 20), N=(7, 64), K=3)\ncases = [dict(M=4, N=8, K=3, dtype="fp32")]\ncpu_cases = cases\n'


def documented(heading: str) -> list[str]:
    """The members of a section's code blocks, as a class has them."""
    section = PAGE.split(f"### {heading}\n")[1].split("\n### ")[0]
    blocks = re.findall(r"```python\nclass \w+\(Kernel\):\n(.*?)```", section, re.DOTALL)
    return [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in blocks]


ARGMAX, TOP_K, DROPOUT, _ = documented("Unordered and random results")
(BACKWARD,) = documented("Backward passes")
CARDS = {
    "argmax": X + "def outputs(self, case, x):\n    return Output(case.M, dtype='int64')\n"
    "def call(self, ops, case, out, x):\n    ops.argmax(x, out)\n" + ARGMAX,
    "top-k": f"{X}def call(self, ops, case, values, indices, x):\n    ops.top_k(x, values, indices)\n{TOP_K}",
    "dropout": f"def call(self, ops, case, out, mask, x, seed):\n    ops.dropout(x, seed, out, mask)\n{DROPOUT}",
    "backward": BACKWARD,
}
KERNELS = {
    "argmax": """
@operator("argmax(Tensor x, Tensor(a!) out) -> ()")
def argmax(x, out):
    out.copy_(x.shape[1] - 1 - x.flip(1).argmax(1))  # the last of equal ones
""",
    "top-k": """
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
    "backward": """
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
    "an index beyond the row": ("argmax", "x.shape[1] - 1 -", "x.shape[1] + 5 + 0 *"),
    "indices of other values": ("top-k", "1 - at", "1 - at.roll(1, 1)"),
    "one index for all": ("top-k", "1 - at", "1 - at[:, :1]"),
    "values that are not the largest": ("top-k", "values.copy_(best)", "values.copy_(best - 1)"),
    "too many kept": ("dropout", "< 0.5", "< 0.9"),
    "a mask of other elements": ("dropout", "where(mask, 2", "where(mask.flip(1), 2"),
    "a gradient without its mean": ("backward", "- normal *", "- 0.5 * normal *"),
    "what was saved is ignored": ("backward", "rstd.double()", "torch.ones_like(rstd).double()"),
}
IDS = tuple(f"fuzz_{number:02}" for number in range(8))
SPECIAL = "m9_n64_k3_fp32_distribution-special_way-plain"  # many zeros, and ones: ties
SHARED = "m9_n64_k3_fp32_distribution-normal_way-shared-inputs"


def made(folder: Path, name: str, kernel: str, request: pytest.FixtureRequest) -> tuple[Library, CardFacts]:
    card = registered.facts(registered.write_card(folder / "cards", "kind", FUZZ + CARDS[name]))
    namespace = re.sub(r"\W", "_", f"documented_{request.node.name}")
    return registered.build(folder / "library", namespace, kernel, "kind"), card


@pytest.mark.parametrize("name", CARDS)
def test_a_documented_card_is_right_and_so_is_its_kernel(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    library, card = made(tmp_path, name, KERNELS[name], request)
    assert card_check.check(library, card).mistakes == ()
    done = fuzz.run(library, card, 3, CPU, [*IDS, SPECIAL, *([SHARED] if name == "backward" else [])])
    assert [one.message for one in done.results if not one.passed] == []
    assert (done.status, done.reason) == ("passed", None)


@pytest.mark.parametrize(("name", "old", "new"), FAULTS.values(), ids=FAULTS)
def test_a_wrong_kernel_of_a_documented_card_is_caught(
    name: str, old: str, new: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert KERNELS[name].count(old) == 1
    library, card = made(tmp_path, name, KERNELS[name].replace(old, new), request)
    done = fuzz.run(library, card, 3, CPU, IDS)
    assert (done.status, done.reason) == ("failed", None)
