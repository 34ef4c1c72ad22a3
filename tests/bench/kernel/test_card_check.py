"""Is a card right? Tried on a small case, with the kernel itself where it has a path for the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.build.library import Library, Manifest
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
def flops(self, case):
    return case.M * case.N
"""
KERNEL = """
@operator("add(Tensor x, Tensor bias, Tensor(a!) out) -> ()")
def add(x, bias, out):
    assert x.shape[0] == 4, "the smallest case is tried"
    out.copy_(x + bias)
"""


class TriedCard:
    """Makes cards and libraries for one test."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.namespace = "".join(letter if letter.isalnum() else "_" for letter in name)

    def check(self, *changes: tuple[str, str], kernel: str = KERNEL) -> tuple[CardError, ...]:
        card, library = self.both(*changes, kernel=kernel)
        return card_check.check(library, card)

    def both(self, *changes: tuple[str, str], kernel: str = KERNEL) -> tuple[CardFacts, Library]:
        body = ON_CPU
        for old, new in changes:
            assert body.count(old) == 1, old
            body = body.replace(old, new)
        card = registered.facts(registered.write_card(self.folder, "tried", body))
        return card, registered.build(self.folder / "library", self.namespace, kernel, "tried")


@pytest.fixture
def trial(tmp_path: Path, request: pytest.FixtureRequest) -> TriedCard:
    return TriedCard(tmp_path, request.node.name)


def test_a_right_card_has_no_mistakes(trial: TriedCard) -> None:
    card, library = trial.both()
    assert card_check.check(library, card) == ()
    assert card_check.tried(card, library) == "operators fit call(); call() and oracle() agree on the CPU"


WRONG = {
    "an oracle that disagrees": (("return x + bias", "return x - bias"), "call",
                                 "call() and oracle() do not agree at out["),
    "another shape": (("return x + bias", "return (x + bias)[1:]"), "oracle",
                      "oracle() gives [3, 8] for out; outputs() says [4, 8]"),
    "an axis that is not independent": (("return x + bias", "return x - x.mean(0, keepdim=True) + bias"), "independent",
                                        "a part of out that is computed alone is not that part of the whole"),
    "an oracle that raises": (("return x + bias", "return x + bias.nothing"), "oracle", "AttributeError: 'Tensor'"),
    "a call that lacks something": (("out, x, bias):", "out, x, bias, scale):"), "call",
                                    "call() takes scale, which neither inputs() nor outputs() gives"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "member", "says"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_at_its_member(trial: TriedCard, change: tuple[str, str], member: str, says: str) -> None:
    (mistake,) = trial.check(change)
    assert mistake.member == member
    assert says in mistake.text
    assert mistake.text.endswith("(case m4_n8_fp32)")
    if "Error" in mistake.text:
        assert mistake.line is not None
        line = Path(mistake.file).read_text().splitlines()[mistake.line - 1]
        assert line.strip() in change[1]


def test_a_kernel_that_is_wrong_shows_how_much(trial: TriedCard) -> None:
    (mistake,) = trial.check(kernel=KERNEL.replace("out.copy_(x + bias)", "out.copy_(x + bias); out[2, 3] += 1"))
    assert "at out[2,3]: " in mistake.text
    assert "times what is allowed" in mistake.text


def test_work_that_is_missing_is_a_mistake(trial: TriedCard) -> None:
    found = trial.check(
        ("return case.M * case.N", "return None"),
        ("return dict(x=", "n = int(torch.ones(1)[0])\n    return dict(x="),
        kernel=KERNEL.replace("assert", "# assert"),  # no case is known to be the smallest
    )
    assert [mistake.member for mistake in found] == ["bytes", "flops"]
    assert "the shapes of m400_n8_fp16 cannot be worked out without torch" in found[0].text
    assert "without it no rate, no roofline and no floor" in found[1].text


def test_a_package_is_not_run(trial: TriedCard, tmp_path: Path) -> None:
    """Its kernels need a GPU, whatever cases the card has."""
    card, _ = trial.both()
    package = Library(tmp_path, Manifest.model_construct(card="tried", kind="package", card_sha256=None), cached=True)
    assert card_check.check(package, card) == ()
    assert "was not run" in card_check.tried(card, package)


def test_a_library_of_another_torch_is_said(trial: TriedCard) -> None:
    card, library = trial.both()
    manifest = library.manifest.model_copy(update={"torch": "1.0"})
    (library.folder / "library.json").write_text(manifest.model_dump_json())
    (mistake,) = card_check.check(library, card)
    assert "was compiled for torch 1.0 alone" in mistake.text
    assert mistake.member == "call"


@pytest.mark.slow
def test_a_kernel_that_crashes_is_one_sentence(trial: TriedCard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_check, "WorkerProcess", WorkerProcess)
    with pytest.raises(KernelgateError, match="the card tried cannot be tried: the process was killed by SIGABRT"):
        trial.check(kernel=KERNEL.replace("assert", "import os; os.abort(); assert"))
