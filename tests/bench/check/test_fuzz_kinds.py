"""The fuzzer with kernels of other kinds than attention: each right one passes, each planted fault is named."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from kernelgate.bench.check import fuzz
from kernelgate.bench.kernel import card_check, fuzz_trials
from kernelgate.bench.record import Check
from tests import registered
from tests.bench.machine import CPU

pytestmark = pytest.mark.usefixtures("in_process")


@dataclass(frozen=True)
class Kind:
    """A card's body and a right kernel for it; faults are changes of the kernel."""

    dtypes: str
    body: str
    kernel: str

    @property
    def card(self) -> str:
        cases = [{"M": 4, "N": 8, "dtype": dtype} for dtype in self.dtypes.split()]
        return f"{FUZZ}cases = cpu_cases = {cases}\n{self.body}"


FUZZ = "fuzz = dict(M=range(1, 40), N=(1, 7, 64))\ndef configurations(self, device):\n"
FUZZ += "    return {f'n{n}': {} for n in range(6)}\n"


def operator(schema: str, *lines: str) -> str:
    """Code that registers it."""
    names = ", ".join(re.findall(r"Tensor(?:\(.!\))? (\w+)", schema))
    return f'@operator("{schema}")\ndef {schema.partition("(")[0]}({names}):\n' + "".join(
        f"    {one}\n" for one in lines
    )


def kind(
    dtypes: str, given: str, call: str, oracle: str, kernel: str, outputs: str = "", outs: str = "out, ", more: str = ""
) -> Kind:
    """`given`: what inputs() gives. `outs`: what call() takes before it. `more`: other members of the card."""
    names = ", ".join(re.findall(r"(\w+) ?= ?draw", given))
    inputs = given if "\n" in given else f"return dict({given})"
    body = f"{more}def inputs(self, case, draw):\n    {inputs}\n"
    body += f"def outputs(self, case, {names}):\n    return {outputs}\n" if outputs else ""
    body += f"def call(self, ops, case, {outs}{names}):\n    {call}\n"
    return Kind(dtypes, f"{body}def oracle(self, case, {names}):\n    return {oracle}\n", kernel)


XY = "x=draw(case.M, case.N), y=draw(case.M, case.N)"
TWO_OUTPUTS = kind(
    "fp16",
    "x=draw(case.M, case.N)",
    "ops.both(x, twice, total)",
    "dict(twice=2 * x, total=x.sum(1))",
    operator(
        "both(Tensor x, Tensor(a!) twice, Tensor(b!) total) -> ()",
        "twice.copy_(2 * x)",
        "total.copy_(x.float().sum(1))",
    ),
    "dict(twice=Output(case.M, case.N), total=Output(case.M, dtype='fp32'))",
    "twice, total, ",
)
EXACT = kind(
    "int8",
    "a=draw(case.M, case.N), b=draw(case.N, 5)",
    "ops.gemm(a, b, out)",
    "a.double() @ b.double()",
    operator("gemm(Tensor a, Tensor b, Tensor(a!) out) -> ()", "out.copy_((a.double() @ b.double()).int())"),
    "Output(case.M, 5, dtype='int32')",
)
FP8 = kind(
    "fp8_e4m3 fp8_e5m2",
    "x=draw(case.M, case.N)",
    "ops.half(x, out)",
    "x / 2",
    operator("half(Tensor x, Tensor(a!) out) -> ()", "out.copy_((x.float() / 2).to(out.dtype))"),
)
IN_PLACE = kind(
    "fp32",
    XY,
    "ops.add_(x, y)",
    "x + y",
    operator("add_(Tensor(a!) x, Tensor y) -> ()", "x.add_(y)"),
    outs="",
    more="in_place = ['x']\n",
)
BESIDE = kind(
    "fp32",
    XY,
    "ops.add_(x, y, sums)",
    "dict(sums=(x + y).sum(1, keepdim=True).expand(-1, 4), x=x + y)",
    operator("add_(Tensor(a!) x, Tensor y, Tensor(b!) sums) -> ()", "x.add_(y)", "sums[:, 0].copy_(x.sum(1))"),
    "dict(sums=Output(case.M, 4))",
    "sums, ",
    "in_place = ['x']\ndef compare(self, case, name, out, expected):\n"
    "    used = expected.new_tensor([1, 0, 0, 0]).bool()\n"
    "    return (out - expected).abs().where(used, expected.new_zeros(())) / 1e-3 if name == 'sums' else None\n",
)
"""Of `sums` the first column alone is written, and used."""
RETURNS = kind(
    "fp16",
    XY,
    "return ops.total(x, y), ops.bigger(x, y)",
    "x + y, x > y",
    operator("total(Tensor x, Tensor y) -> Tensor", "return x + y")
    + operator("bigger(Tensor x, Tensor y) -> Tensor", "return x > y"),
    "dict(total=Output(case.M, case.N), bigger=Output(case.M, case.N, dtype='bool'))",
    outs="",
)
STRIDED = kind(
    "fp32",
    "x=draw(case.N, case.M).t(), row=draw(1, case.N).expand(case.M, case.N), every=draw(case.M, 3)[:, ::2]",
    "ops.add(x, row, every, out)",
    "x + row + every.sum(1, keepdim=True)",
    operator(
        "add(Tensor x, Tensor row, Tensor every, Tensor(a!) out) -> ()",
        "assert x.stride() == (1, x.shape[0]), x.stride()",
        "assert row.stride()[0] == 0 or row.shape[0] == 1, row.stride()",
        "assert every.stride() == (3, 2), every.stride()",
        "out.copy_(x + row + every.sum(1, keepdim=True))",
    ),
)
LOGARITHM = kind(
    "fp16",
    "x = draw(case.M, case.N)\n    x[0, 0] = 0\n    return dict(x=x)",
    "ops.log(x, out)",
    "torch.log(x)",
    operator("log(Tensor x, Tensor(a!) out) -> ()", "out.copy_(torch.log(x.double()))"),
    more="distributions = ['normal', 'large']\n",
)
INDICES = kind(
    "fp32",
    "x=draw(case.M, case.N), rows=draw.integers(0, case.M, 8), columns=draw.integers(0, case.N, 8)",
    "ops.at(x, rows, columns, out)",
    "x[rows, columns]",
    operator(
        "at(Tensor x, Tensor rows, Tensor columns, Tensor(a!) out) -> ()",
        "rows, columns = (one.as_strided((8,), (1,)) for one in (rows, columns))",
        "out.copy_(x[rows % x.shape[0], columns % x.shape[1]])",
    ),
    "Output(8)",
)
KINDS = {
    "two outputs": TWO_OUTPUTS,
    "int8 to int32": EXACT,
    "fp8": FP8,
    "in place": IN_PLACE,
    "in place, with an output beside": BESIDE,
    "returns new tensors": RETURNS,
    "strided and expanded inputs": STRIDED,
    "infinite where the oracle is": LOGARITHM,
    "two lists of indices": INDICES,
}


Run = Callable[..., Check]
OWN = tuple(f"n{number}" for number in range(6))
"""The card's own list."""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Fuzzes a kind with its kernel, or a changed one."""

    def fuzzed(kind: Kind, kernel: str, ids: Sequence[str] = OWN) -> Check:
        card = registered.facts(registered.write_card(tmp_path / "cards", "kind", kind.card))
        library = registered.build(tmp_path / "library", tmp_path.name, kernel, "kind")
        return fuzz.run(library, card, 3, CPU, ids)

    return fuzzed


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.slow
def test_a_right_kernel_passes(run: Run, kind: Kind) -> None:
    done = run(kind, kind.kernel, ids=())
    assert {one.message for one in done.results} == {None}
    assert {one.id for one in done.results} > set(OWN), "and what is risky besides"
    assert (done.status, done.card, done.failed) == ("passed", "kind", 0)
    assert done.asked == done.run == len(done.results)


BIGGER = ('-> Tensor")\ndef bigger(x, y):\n    return x > y', '-> ()")\ndef bigger(x, y):\n    pass')
FAULTS = {
    "an output that is never written": (TWO_OUTPUTS, "    total.copy_(x.float().sum(1))\n", "", "total.*never written"),
    "NaN in one output": (TWO_OUTPUTS, "twice.copy_(2 * x)", "twice.copy_(2 * x); twice[0, 0] = float('nan')",
                          r"^the element twice\[0,0\] is NaN or Inf$"),
    "off by one": (EXACT, ".int())", ".int()); out[-1, -1] += 1", r"error 1, at out\[\d+,4\] of shape .* 2 times"),
    "an integer input": (EXACT, "out.copy_(", "b.add_(1); out.copy_(", "the kernel wrote to its input b"),
    "fp8 off by a step": (FP8, "/ 2)", "/ 2 * 2)", r"error .* times what is allowed"),
    "in place, wrong": (IN_PLACE, "x.add_(y)", "x.add_(y, alpha=1.5)", r"error .*, at x\["),
    "in place, wrong beside": (BESIDE, "x.sum(1)", "x.sum(1) + 1", r"wrong at sums|error .*, at sums"),
    "unwritten where it is used": (BESIDE, "    sums[:, 0].copy_(x.sum(1))\n", "", "sums.* never written"),
    "returns what is wrong": (RETURNS, "return x > y", "return x >= 2 * y", r"at bigger\["),
    "returns another shape": (RETURNS, "return x + y", "return (x + y)[:, :0]",
                              r"the kernel returned fp16 \[\d+, 0\] for total; outputs\(\) says fp16 \[\d+, \d+\]"),
    "returns nothing": (RETURNS, *BIGGER,
                        r"call\(\) gave Tensor, NoneType; it must give a tensor for each output: total, bigger"),
    "strides ignored": (STRIDED, "out.copy_(x +", "out.copy_(x.as_strided(x.shape, (x.shape[1], 1)) +", "error|NaN"),
    "finite where the oracle is not": (LOGARITHM, "x.double())", "x.double()).clamp(-60000)",
                                     r"^finite at out\[0,0\] of shape \[.*\], where the oracle has -inf$"),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "old", "new", "says"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_named(run: Run, kind: Kind, old: str, new: str, says: str) -> None:
    assert kind.kernel.count(old) == 1
    done = run(kind, kind.kernel.replace(old, new))
    messages = [one.message or "" for one in done.results if not one.passed]
    assert done.status == "failed"
    assert [one for one in messages if re.search(says, one)], messages


KEEPS = "known = {}\n" + operator(
    "both(Tensor x, Tensor y, Tensor(a!) out) -> ()",
    "out.copy_(x + known.setdefault((x.data_ptr(), x.shape, y.data_ptr()), y))",
)
SUM = kind("fp32", XY, "ops.both(x, y, out)", "x + y", KEEPS)


@pytest.mark.parametrize("by", ["the first input's address", "all addresses"])
def test_what_is_kept_by_the_first_inputs_address_alone_is_found(run: Run, by: str) -> None:
    """Such as a descriptor of a tensor, which an allocator puts elsewhere for the next call."""
    kernel = KEEPS if by == "all addresses" else KEEPS.replace(", y.data_ptr()", "")
    done = run(SUM, kernel, OWN[:1])
    message = done.results[0].message or ""
    assert message.startswith("with x where it was and the other inputs elsewhere: ") == (kernel != KEEPS), message
    assert done.failed == (kernel != KEEPS)


def test_a_wrong_shape_of_a_view_is_no_refusal(run: Run) -> None:
    kernel = RETURNS.kernel.replace("return x + y", "return (x + y)[:, : None if x.is_contiguous() else 0]")
    assert kernel != RETURNS.kernel
    (one,) = run(RETURNS, kernel, ["m4_n8_fp16_distribution-normal_way-gaps"]).results
    assert re.search(r"where x has gaps between its rows, the kernel returned fp16 \[4, 0\]", one.message or ""), one


@pytest.mark.parametrize(
    ("card", "says"),
    [
        (
            ("draw(case.M, case.N))", "draw(case.M, case.Q))"),
            r"the card failed at \S+\.py:\d+: the case has no axis 'Q'",
        ),
        (("2 * x, total", "1 / 0 * x, total"), r"the card failed at \S+\.py:\d+: ZeroDivisionError: division by zero"),
        (("x.sum(1))", "x.sum(1) * 1j)"), r"the card failed at .*oracle\(\) gave complex numbers; outputs are real"),
        (("x.sum(1))", "x.sum(0))"), r"the card failed at .*oracle\(\) gave shape \[\d+\] for total"),
        (("return dict(x=draw", "return dict(y=draw(2).double(), x=draw"), "the input y has the dtype torch.float64"),
    ],
    ids=["inputs", "oracle", "complex numbers", "oracle's shape", "a dtype"],
)
def test_what_the_card_does_wrong_is_not_called_the_kernels_fault(run: Run, card: tuple[str, str], says: str) -> None:
    """Planted where listing does not see it: behind a condition that holds once torch is there."""
    assert TWO_OUTPUTS.body.count(card[0]) == 1
    broken = TWO_OUTPUTS.body.replace(*card)
    listed = "def inputs(self, case, draw):\n"
    guard = f"{listed}    if not hasattr(torch, '__file__'):\n        return dict(x=draw(case.M, case.N))\n"
    broken = broken.replace(listed, guard).replace("def outputs(self, case, x)", "def outputs(self, case, x, **_)")
    ways = [f"m4_n8_fp16_distribution-normal_way-{way}" for way in fuzz_trials.WAYS["cpu"] if way != "shared-inputs"]
    done = run(replace(TWO_OUTPUTS, body=broken), TWO_OUTPUTS.kernel, [*OWN, *ways])
    assert (done.status, done.failed, done.run, done.asked) == ("skipped", 0, 0, len(OWN)), "open, and nobody's fault"
    assert re.search(says, done.reason or ""), done.reason
    assert "cannot be judged" in (done.reason or "")
    assert "the kernel" not in (done.reason or "")
    assert fuzz.exit_code([done]) == 3


def test_a_kernel_that_changes_torch_is_not_called_the_cards_fault(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.equal", torch.equal)  # put back in the end: the kernel runs in this process
    done = run(RETURNS, RETURNS.kernel.replace("return x + y", "torch.equal = None; return x + y"), OWN[:1])
    assert (done.status, done.unjudged) == ("skipped", 1)
    assert "to judge it failed, as where a kernel changes Python or torch: TypeError: " in (done.reason or "")


@pytest.mark.parametrize(
    ("outputs", "says"),
    [
        (
            "dict(total=Output(case.N), bigger=Output(case.M))",
            r"oracle\(\) gives \[\d+, 64\] for total; outputs\(\) says \[64\]",
        ),
        ("Output(case.M, case.N)", r"oracle\(\) gave Tensor, Tensor; it must give a tensor for each output: out"),
    ],
    ids=["another shape", "another count"],
)
def test_outputs_that_no_kernel_can_return_are_the_cards_fault(run: Run, outputs: str, says: str) -> None:
    body = re.sub(r"(def outputs\(.*\):\n    return ).*", lambda found: found[1] + outputs, RETURNS.body)
    assert body != RETURNS.body
    done = run(replace(RETURNS, body=body), RETURNS.kernel)
    assert (done.status, done.failed, done.unjudged) == ("skipped", 0, len(OWN))
    assert re.search(rf"the card failed at .*{says}", done.reason or ""), done.reason


# The cards of tests/kinds, for unordered and random results and for backward passes

DOCUMENTED = registered.ROOT / "tests/kinds/.ci/kernels"
RIGHT = {
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
WRONG = {
    "argmax": ("1 - x.flip", "2 - x.flip"),  # an index beside the maximum
    "top_k": ("1 - at", "1 - at[:, :1]"),  # one index for all
    "dropout": ("< 0.5", "< 0.9"),  # too many kept
    "rms_norm_backward": ("rstd.double()", "torch.ones_like(rstd).double()"),  # what was saved is ignored
}
OF_LIST = tuple(f"fuzz_{number:02}" for number in range(8))
SPECIAL = "m9_n64{}_fp32_distribution-special_way-plain"  # many zeros, and ones: ties
SHARED = "m9_n64{}_fp32_distribution-normal_way-shared-inputs"


@pytest.mark.parametrize("name", RIGHT)
def test_a_documented_card_tells_a_right_kernel_from_a_wrong_one(name: str, tmp_path: Path) -> None:
    card, wrong = registered.facts(DOCUMENTED / f"{name}.py"), RIGHT[name].replace(*WRONG[name])
    assert wrong != RIGHT[name]
    right, wrong_ = (
        registered.build(tmp_path / side, f"{tmp_path.name}_{side}", code, name)
        for side, code in (("right", RIGHT[name]), ("wrong", wrong))
    )
    assert card_check.check(right, card)[0] == ()
    more = [SPECIAL, *([SHARED] if name == "rms_norm_backward" else [])]
    done = fuzz.run(right, card, 3, CPU, [*OF_LIST, *(one.format("_k3" if name == "top_k" else "") for one in more)])
    assert [one.message for one in done.results if not one.passed] == []
    assert (done.status, done.reason) == ("passed", None)
    done = fuzz.run(wrong_, card, 3, CPU, OF_LIST)
    assert (done.status, done.reason) == ("failed", None)
