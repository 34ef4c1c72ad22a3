"""Is a card right? Tried on a small case, with the kernel itself where it has a path for the CPU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from kernelgate.bench.build.library import Library
from kernelgate.bench.core.errors import CardError, KernelgateError
from kernelgate.bench.kernel import card_check
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.system.worker import WorkerProcess
from tests import registered

pytestmark = pytest.mark.usefixtures("in_process")

ON_CPU = """
cases = [dict(M=400, N=8, dtype="fp16")]
cpu_cases = [dict(M=40, N=8, dtype="fp32"), dict(M=4, N=8, dtype="fp32"), dict(M=8, N=8, dtype="fp32")]
independent = dict(x=0, out=0)
def inputs(self, case, draw):
    return dict(x=draw(case.M, case.N), bias=draw(case.N))
def outputs(self, case, x, bias):
    return Output(*x.shape)
def call(self, ops, case, out, x, bias):
    ops.add(x, bias, out)
def oracle(self, case, x, bias):
    return x + bias
"""
KERNEL = """
@operator("add(Tensor x, Tensor bias, Tensor(a!) out) -> ()")
def add(x, bias, out):
    assert x.shape[0] == 4, "the smallest case is tried"
    out.copy_(x + bias)
"""


@dataclass(frozen=True)
class TriedCard:
    """Makes cards and libraries for one test, in a folder that has its name."""

    folder: Path

    def check(self, *changes: tuple[str, str], kernel: str = KERNEL) -> tuple[CardError, ...]:
        try:
            card, library = self.both(*changes, kernel=kernel)
        except CardError as error:
            return (error,)
        return card_check.check(library, card)[0]

    def both(self, *changes: tuple[str, str], kernel: str = KERNEL) -> tuple[CardFacts, Library]:
        body = ON_CPU
        for old, new in changes:
            assert body.count(old) == 1, old
            body = body.replace(old, new)
        card = registered.facts(registered.write_card(self.folder, "tried", body))
        return card, registered.build(self.folder / "library", self.folder.name, kernel, "tried")


@pytest.fixture
def trial(tmp_path: Path) -> TriedCard:
    return TriedCard(tmp_path)


def test_a_right_card_has_no_mistakes(trial: TriedCard) -> None:
    card, library = trial.both()
    assert card_check.check(library, card) == ((), "operators fit call(); call() and oracle() agree on the CPU")


ORACLE, LAST = "def oracle(self, case, x, bias):", "return x + bias"
ANY = ("independent = dict(x=0, out=0)", "")  # what a card need not say
BROKEN = {
    "a member that no card has": (("cpu_cases =", "cpu_case ="), "cpu_case", "did you mean cpu_cases?"),
    "an axis that fuzz lacks": ((ANY[0], "fuzz = dict(M=range(1, 9))"), "fuzz", "the case has no axis 'N'; it has M"),
    "an axis that a configuration lacks": (
        (ANY[0], "fuzz = dict(M=8)\ndef configurations(self, device):\n    return dict(a=dict(N=8), b={})"),
        "fuzz", "add to fuzz each axis that the card reads",
    ),
    "two ends in place of a range": ((ANY[0], "fuzz = dict(M=(1, 300), N=8)"), "fuzz", "write M=range(1, 301) for all"),
    "a case beyond every GPU": (("M=400, N=8", "M=2**20, N=2**20"), "cases", "and no GPU has more than 288 GiB: make"),
    "a case beyond this machine": (("M=40, N=8", "M=2**24, N=2**24"), "cpu_cases", "and this machine has"),
    "another shape": ((LAST, "return (x + bias)[1:]"), "oracle", "oracle() gives [3, 8] for out; outputs() s"),
    "what is no output": (("Output(*x.shape)", "[4, 8]"), "outputs", "outputs() gave [4, 8]; write Output(M, N), or"),
    "what is no output, by torch": (
        ("return Output(*x.shape)", "import torch; return [int(torch.tensor(4)), 8]"),
        "outputs", "outputs() gave [4, 8]; write Output(M, N), or a dict of them",
    ),
    "an oracle that raises": ((LAST, "return x + bias.nothing"), "oracle", "AttributeError: 'Tensor'"),
    "an axis that is not independent": ((LAST, "return x - x.mean(0, keepdim=True) + bias"), "independent",
                                        "a part of out computed alone differs from that part of the whole"),
    "axes of different lengths": (("x=0, out=0", "x=0, out=1"), "independent", "of different lengths (x: 4, out: 8)"),
    "an independent part of nothing": (("x=0, out=0", "z=0"), "independent", "names z; there are x, bias, out"),
    "no case that is fuzzed": (
        (ANY[0], "fuzz = dict(M=8, N=8)\ndef configurations(self, device):\n    return {}"), "configurations", "none",
    ),
    "a size beyond every memory": ((ANY[0], "fuzz = dict(M=range(1, 2**40), N=8)"), "fuzz", "end its range where it"),
    "a size below zero": (("Output(*x.shape)", "Output(-1)"), "outputs", "no size is below 0"),
    "an input of another kind": (("bias=draw(case.N)", "bias=draw"), "inputs", "the input bias is a"),
    "an output of no dtype": (("(*x.shape)", "(*x.shape, dtype='double')"), "outputs", "there is no dtype 'double'"),
    "a comparison that raises": ((ORACLE, f"def compare(self, *_):\n    return [][1]\n{ORACLE}"), "compare", "IndexE"),
    "a comparison of another kind": ((ORACLE, f"def compare(self, *_):\n    return 1\n{ORACLE}"), "compare", "gave a"),
    "a comparison that calls what is right wrong": (
        (ORACLE, f"def compare(self, case, name, out, expected):\n    return bool((out != expected).all())\n{ORACLE}"),
        "compare", "the oracle's own result is called wrong",
    ),
    "a reference that names what is not there": (
        (ORACLE, f"def reference(self, case, x, bias):\n    return torch.no_such(x)\n{ORACLE}"), "reference", "no_such",
    ),
    "an axis beyond the last": (("x=0, out=0", "x=5, out=5"), "independent", "axis 5 of x, whose shape is [4, 8]"),
    "NaN in an input that is none": (
        (ORACLE, f"def nonfinite(self, case):\n    return dict(y=[float('nan')])\n{ORACLE}"),
        "nonfinite", "nonfinite() names y, which is no input of real numbers",
    ),
    "a call that lacks something": (("out, x, bias):", "out, x, bias, scale):"), "call",
                                    "call() takes scale, which neither inputs() nor outputs() gives"),
    "a call past its kernels": (
        ("ops.add(x, bias, out)", "out.copy_(x + bias)"), "call", "call() does not use ops",
    ),
    "a tolerance that takes anything": (
        (ORACLE, f"def tolerance(self, case):\n    return 100.0, 0.0\n{ORACLE}"),
        "compare", "outputs of zeros are called right: the tolerance is too large",
    ),
    "a comparison that always agrees": (
        (ORACLE, f"def compare(self, case, name, out, expected):\n    return True\n{ORACLE}"),
        "compare", "outputs that are all NaN are called right",
    ),
    "a state that is an input": (
        (ORACLE, f"def state(self, case, x, bias):\n    return dict(bias=bias * 2)\n{ORACLE}"),
        "inputs", "state() gives bias, which is an input already",
    ),
    "a case outside of the limits": (
        (ANY[0], "fuzz = dict(M=range(100, 300), N=8)\nlimits = dict(M=range(100, 400))"),
        "limits", "a case has M=4",
    ),
    "a call that launches nothing": (("ops.add(x, bias, out)", "pass"), "call", "call() launches nothing"),
    "a call that gives nothing": (("out, x, bias):\n    ops.add(x, bias, out)", "x, bias):\n    pass"), "call",
                                  "call() gave NoneType; it must give a tensor for each output: out"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "member", "says"), BROKEN.values(), ids=BROKEN)
def test_a_broken_card_is_one_sentence_at_its_line(
    trial: TriedCard, change: tuple[str, str], member: str, says: str
) -> None:
    mistake, *_ = trial.check(change)
    assert mistake.member == member, mistake
    assert says in mistake.text
    assert mistake.line is not None
    assert "Traceback" not in str(mistake)
    if "Error" in mistake.text:
        line = Path(mistake.file).read_text().splitlines()[mistake.line - 1].strip()
        assert line in change[1] or change[1] in line


def test_a_transposed_shape_is_seen_where_all_timed_cases_are_square(trial: TriedCard) -> None:
    every = ON_CPU[ON_CPU.index("cases = ") : ON_CPU.index("def inputs")]
    square = "cpu_cases = [dict(M=4, N=4)]\nfuzz = dict(M=range(1, 300), N=range(1, 300))\n"
    assert TriedCard(trial.folder / "right").check((every, square)) == ()
    [mistake] = trial.check((every, "cpu_case = [dict(M=4, N=4)]\n"))
    assert (mistake.member, "did you mean cpu_cases?" in mistake.text) == ("cpu_case", True), "and not: no cases"
    [mistake] = trial.check((every, square), ("Output(*x.shape)", "Output(*reversed(x.shape))"))
    assert mistake.text.startswith("oracle() gives [3, 4] for out; outputs() says [4, 3]")
    written = "def outputs(self, case, x, bias):\n    return Output(*x.shape)\n"
    [mistake] = TriedCard(trial.folder / "unwritten").check(
        (every, square), ("return x + bias", "return (x + bias).t()"), (written, "")
    )
    assert mistake.text.startswith("oracle() gives [4, 3] for out; without outputs() it has the first input's [3, 4]")


def test_what_is_optional_may_be_left_out_and_helpers_and_lists_are_no_mistake(trial: TriedCard) -> None:
    """Two sizes as a list, a method that another one uses, and a private name."""
    fuzz = (
        "_note = 'private'\nSIZES = [1, 300]\nfuzz = dict(M=SIZES, N=(64, 128))\ndef sum(self, x, y):\n    return x + y"
    )
    assert trial.check((ANY[0], fuzz), (LAST, "return self.sum(x, bias)")) == ()


PACKAGE = """
import torch
def add(x, bias, out):
    if not x.is_cuda and ON_GPU:
        raise RuntimeError("0 active drivers")
    out.copy_(x + bias)

class Add(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias, out):
        add(x, bias, out)
"""
CALLS = {
    "a submodule that is not imported": ("ops.kernels.add(x, bias, out)", True, "has no attribute 'kernels'"),
    "other arguments": ("ops.add(x, bias)", True, "missing 1 required positional argument: 'out'"),
    "an autograd function's other arguments": ("ops.Add.apply(x, out)", True, "missing 1 required positional argument"),
    "nothing": ("pass", True, "call() launches nothing: it leaves its outputs as they were"),
    "the wrong way round": ("ops.add(-x, bias, out)", False, "call() and oracle() do not agree at out["),
    "what takes a GPU": ("ops.add(x, bias, out)", True, None),
    "what a CPU can run, too": ("ops.add(x, bias, out)", False, None),
}


@pytest.mark.parametrize(("call", "on_gpu", "says"), CALLS.values(), ids=CALLS)
def test_a_packages_call_must_name_what_is_there(trial: TriedCard, call: str, on_gpu: bool, says: str | None) -> None:
    cpu = next(line for line in ON_CPU.splitlines() if line.startswith("cpu_cases"))
    card, _ = trial.both(("ops.add(x, bias, out)", call), (cpu, ""))
    code = PACKAGE.replace("ON_GPU", str(on_gpu))
    package = registered.package(trial.folder / "package", f"{trial.folder.name}_package", code, "tried")
    mistakes, tried = card_check.check(package, card)
    if says is None:
        assert mistakes == ()
        assert ("with tensors of the CPU it says: 0 active drivers" in tried) == on_gpu
    else:
        (mistake,) = mistakes
        assert mistake.member == "call"
        assert says in mistake.text


def test_a_kernel_that_is_wrong_shows_how_much(trial: TriedCard) -> None:
    (mistake,) = trial.check(kernel=KERNEL.replace("out.copy_(x + bias)", "out.copy_(x + bias); out[2, 3] += 1"))
    assert "at out[2,3]: " in mistake.text
    assert "times what is allowed" in mistake.text


@pytest.mark.slow
def test_an_oracle_that_the_machine_ends_is_named_and_no_mistake_of_the_card(
    trial: TriedCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for want of memory: an oracle in float64 may need far more of it than a GPU's kernel does."""
    monkeypatch.setattr(card_check, "WorkerProcess", WorkerProcess)
    card, library = trial.both((ORACLE, f"{ORACLE}\n    import os; os.kill(os.getpid(), 9)"))
    with pytest.raises(KernelgateError, match="cannot be tried: oracle, on the CPU: the process was killed by SIGKILL"):
        card_check.check(library, card)


@pytest.mark.slow
def test_a_kernel_that_crashes_is_one_sentence(trial: TriedCard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_check, "WorkerProcess", WorkerProcess)
    (mistake,) = trial.check(kernel=KERNEL.replace("assert", "import os; os.abort(); assert"))
    assert mistake.member == "call"
    assert mistake.text.startswith("could not be tried: the process was killed by SIGABRT")
