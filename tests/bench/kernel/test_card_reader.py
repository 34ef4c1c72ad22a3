"""Cards are read without torch, and each mistake in one names the file, the line, the member and what was expected."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kernelgate.bench.build.sources import Package
from kernelgate.bench.core.errors import CardError, KernelgateError
from kernelgate.bench.kernel import cards
from tests import registered
from tests.processes import marked

RIGHT = """
cases = [dict(M=4, N=8, dtype="fp16")]
cpu_cases = [dict(M=2, N=8, dtype="fp32")]
fuzz = dict(M=range(1, 9), N=(4, 8))
def inputs(self, case, draw):
    return dict(x=draw(case.M, case.N), bias=draw(case.N, dtype="fp32"))
def call(self, ops, case, out, x, bias, alpha=1.0):
    ops.add(out, x, bias)
def oracle(self, case, x, bias):
    return x + bias
"""


def write(tmp_path: Path, *changes: tuple[str, str], more: str = "") -> Path:
    """A card that is right but for the changes."""
    text = RIGHT + more
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return registered.write_card(tmp_path, "card", text)


def test_the_card_that_the_others_are_made_of_is_right(tmp_path: Path) -> None:
    path = write(tmp_path)
    card = registered.facts(path)
    assert (card.name, card.label, card.file, card.reference) == ("card", "Card", path, "PyTorch")
    assert [case.id for case in card.suites["pr"]] == ["m4_n8_fp16"]
    assert card.target.bytes == 4 * 8 * 2 + 8 * 4 + 4 * 8 * 2, "both inputs and the output"
    assert (card.gives, card.call_needs) == (("bias", "out", "x"), ("out", "x", "bias"))
    assert set(card.fuzz["cuda"]) == {f"fuzz_{number:02}" for number in range(32)}
    assert card.fuzz["cpu"]["fuzz_00"] == {
        "dtype": {"choice": ["fp32"]}, "M": {"range": [1, 9, 1]}, "N": {"choice": [4, 8]}
    }  # fmt: skip


AT_THEIR_LINES = {
    "cases no list": ("cases", 'cases = [dict(M=4, N=8, dtype="fp16")]', "cases = 5", "it must be a list of dicts of"),
    "no cases": ("", 'cases = [dict(M=4, N=8, dtype="fp16")]\ncpu_cases = [dict(M=2, N=8, dtype="fp32")]\n', "", "no"),
    "an unknown dtype": ("cases", '"fp16")]', '"fp15")]', "dtype is 'fp15'; it may be fp32, fp16"),
    "the same case twice": ("cases", '"fp16")]', '"fp16")] * 2', "two cases have the id m4_n8_fp16"),
    "axes that meet in an id": ("cases", "[dict(M=4, N=8, d", "[dict(M=4, m=8, N=8, d", "two axes are called 'm'"),
    "nothing to call it by": ("cases", 'dict(M=4, N=8, dtype="fp16")', "dict(causal=False)", "no axis that an id"),
    "no inputs": ("inputs", "def inputs", "def imputs", "the card has no inputs()"),
    "inputs that raise": ("inputs", "draw(case.M, case.N)", "draw(case.M, case.K)", "the case has no axis 'K'; it has"),
    "an unknown dtype drawn": ("inputs", 'dtype="fp32"))\n', 'dtype="fp31"))\n', "there is no dtype 'fp31'; there are"),
}  # fmt: skip


MORE = {
    "outputs that raise": ("outputs", "def outputs(self, case, x, bias):\n    return Output(x.shape[7])",
                           "IndexError: tuple index out of range"),
    "a tolerance of a wrong kind": ("tolerance", "def tolerance(self, case):\n    return 0.1",
                                    "tolerance() gave 0.1; it must give (atol, rtol) or None"),
    "flops below zero": ("flops", "def flops(self, case):\n    return -1.0", "gave -1.0; it must give a number that"),
    "flops that torch counts": ("flops", "def flops(self, case):\n    return torch.numel(case)",
                                "an object of torch or another module that is not there while cards are listed"),
    "a suite called pr": ("suites", "suites = dict(pr=[dict(M=1, N=1, dtype='fp16')])", "'pr' is the name of cases"),
    "a word in the place of names": ("in_place", "in_place = 'x'", "in_place is 'x'; it must be a list of names"),
    "an unknown distribution": ("distributions", "distributions = ['normal', 'cauchy']", "'cauchy' is none of normal"),
    "kernel no regular expression": ("kernel", "kernel = '('", "'(' is no regular expression"),
    "a range beyond all": ("fuzz", "fuzz = dict(M=range(10**30))", "too large"),
    "ops where only call() gets them": ("state", "def state(self, ops, case, x):\n    return {}",
                                        "state() takes ops, which only call() gets: write state(self, case, …)"),
    "no build": ("build", "build = None", "the card has no build"),
    "a build without sources": ("build", "build = Extension()", "Extension() names no sources"),
}  # fmt: skip


FILES = {
    "nowhere": ("import nowhere\n", 1, "ModuleNotFoundError: No module named 'nowhere'"),
    "unclosed": ("x = 1\n\ny = (\n", 3, "SyntaxError: '(' was never closed"),
    "leaving": ("x = 1\nraise SystemExit('I leave')\n", 2, "SystemExit: I leave"),
    "none": ("from kernelgate import Kernel\n", None, "defines one subclass of kernelgate.Kernel; this one has none"),
    "two": ("from kernelgate import Kernel\nclass A(Kernel): pass\nclass B(Kernel): pass\n", None, "this one has A, B"),
    "flags": (
        "from kernelgate import Extension\nbuild = Extension('a', flags='-O3')\n",
        2,
        "flags are a list of words",
    ),
    "torch": (
        "from kernelgate import Extension\nbuild = Extension('a', torch='')\n",
        2,
        "torch is a version, such as \"2.11\", and not ''",
    ),
    "packed": ("PK\x03\x04", None, "it is packed as zip: unpack it with `unzip`"),
    "raising": (
        "from kernelgate import Kernel\nclass A(Kernel):\n    def __init__(self): 1 / 0\n",
        3,
        "ZeroDivisionError",
    ),
    "my scale": ("from kernelgate import Kernel\n", None, "rename it: the name of a card has letters of ASCII"),
}


@pytest.fixture(scope="module")
def mistakes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CardError]:
    """Of one reading of all cards that are wrong, by the card's name; one that is right is there, too."""
    folder = tmp_path_factory.mktemp("cards")
    write(folder)
    for at, (_, old, new, _) in enumerate(AT_THEIR_LINES.values()):
        write(folder, (old, new)).rename(folder / f"changed_{at}.py")
    for at, (_, more, _) in enumerate(MORE.values()):
        write(folder, more=more).rename(folder / f"more_{at}.py")
    for name, (text, _, _) in FILES.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "_helper.py").write_text("raise RuntimeError('not a card')\n")
    os.mkfifo(folder / "pipe.py")
    write(folder)
    found = cards.read(folder)
    assert found.names == ("card",), "a mistake in one leaves the others"
    with pytest.raises(CardError, match=r"changed_0\.py:\d+: cases: "):
        found.without_mistakes()
    return {Path(mistake.file).stem: mistake for mistake in found.mistakes}


def test_a_mistake_names_its_member_and_line_and_says_what_was_expected(mistakes: dict[str, CardError]) -> None:
    for at, (member, _, new, says) in enumerate(AT_THEIR_LINES.values()):
        mistake = mistakes[f"changed_{at}"]
        assert (mistake.member, says in mistake.text) == (member or "cases", True), mistake
        named = Path(mistake.file).read_text().splitlines()[(mistake.line or 0) - 1]
        assert f"{member} = " in named or f"def {member}" in named or "class Card" in named or new.strip() in named
        assert str(mistake).startswith(f"{mistake.file}:{mistake.line}: {mistake.member}: ")
    for at, (member, _, says) in enumerate(MORE.values()):
        mistake = mistakes[f"more_{at}"]
        assert (mistake.member, says in mistake.text) == (member, True), mistake
        # A value's own line is that of the first definition: `build` has one above.
        before, _, below = Path(mistake.file).read_text().partition("class Card")
        assert 0 < (mistake.line or 0) - before.count("\n") - 1 <= below.count("\n")
    for name, (_, line, says) in FILES.items():
        assert (mistakes[name].line, mistakes[name].member, says in mistakes[name].text) == (line, "", True)


def test_a_pipe_in_the_place_of_a_card_is_not_waited_for(mistakes: dict[str, CardError]) -> None:
    assert mistakes["pipe"].text == "a card is a file; this is none"


def test_a_card_that_prints_does_no_harm(tmp_path: Path) -> None:
    noise = "print('{}')\nimport os\nos.write(1, b'[]')\ndef label(self, case):\n    print(5)\n    return 'quiet'\n"
    assert registered.facts(write(tmp_path, more=noise)).target.label == "quiet"


def test_a_card_that_ends_the_process_is_named(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "deadly.py").write_text("import os; os.write(2, b'one word\\n'); os._exit(4)\n")
    (tmp_path / "crashes.py").write_text("import ctypes; ctypes.string_at(0)\n")
    found = cards.read(tmp_path)
    assert found.names == ("card",), "the others are read"
    said = {Path(one.file).name: one.text for one in found.mistakes}
    assert said["deadly.py"].endswith("the process exited early with code 4; last lines of stderr: one word")
    assert said["crashes.py"].startswith("the card cannot be read: the process was killed by SIGSEGV")


def test_a_card_that_is_killed_from_outside_is_no_mistake(tmp_path: Path) -> None:
    """As one that the system kills for want of memory."""
    (tmp_path / "killed.py").write_text("import os; os.kill(os.getpid(), 9)\n")
    with pytest.raises(KernelgateError, match=r"killed\.py: the card cannot be read: .* killed by SIGKILL"):
        cards.read(tmp_path)


@pytest.mark.slow
def test_a_card_that_hangs_is_named_with_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "PATIENCE_S", 10.0)  # most of it to start, on a busy machine
    (tmp_path / "slow.py").write_text("import os, time\nos.write(2, b'almost done')\ntime.sleep(60)\n")
    said = r"slow\.py: the card cannot be read: the process did not answer for 10 s .*almost don"
    with pytest.raises(KernelgateError, match=said):
        cards.read(tmp_path)


STARTS = {
    "a fork": "import os, time\nos.fork() or time.sleep({mark})",
    "a process of a session of its own": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep({mark})",
    "a program": "import subprocess\nsubprocess.Popen(['sleep', '{mark}'], start_new_session=True)",
    "a thread": "import threading, time\nthreading.Thread(target=time.sleep, args=({mark},)).start()",
    "a flood": "import os\nos.system('yes | head -c 50000000; yes | head -c 50000000 >&2')",
}


@pytest.mark.parametrize("what", STARTS)
def test_a_card_that_starts_something_is_read_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    mark = f"77{os.getpid()}"
    monkeypatch.setenv("PLANTED", mark)
    write(tmp_path, more="")
    with (tmp_path / "card.py").open("a") as file:
        file.write(f"\n{STARTS[what].format(mark=mark)}\n")
    assert cards.read(tmp_path).names == ("card",)
    assert marked(mark) == []


def test_a_card_that_stops_is_named_at_its_line(tmp_path: Path) -> None:
    stops = {"import sys; sys.exit(3)": "SystemExit: 3", "input()": "EOFError", "raise KeyboardInterrupt": "KeyboardIn"}
    for at, line in enumerate(stops):
        (tmp_path / f"stops_{at}.py").write_text(f"1\n{line}\n")
    mistakes = sorted(cards.read(tmp_path).mistakes, key=lambda one: str(one.file))
    for at, (mistake, said) in enumerate(zip(mistakes, stops.values(), strict=True)):
        assert (Path(mistake.file).name, mistake.line) == (f"stops_{at}.py", 2)
        assert said in mistake.text


def test_cards_are_read_once_for_each_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "one", more="def label(self, case):\n    return 'once'\n")
    first = cards.read(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    with monkeypatch.context() as patched:
        patched.setattr(cards, "WorkerProcess", lambda *_, **__: pytest.fail("read again"))
        assert cards.read(tmp_path / "one") == first
        assert cards.read(tmp_path / "copy").cards[0].file == tmp_path / "copy" / "card.py"
    (tmp_path / "copy" / "_helper.py").write_text("x = 1\n")
    assert cards.read(tmp_path / "copy").names == ("card",)


HEAVY = '''
"""A card as people write them."""
import numpy as np
import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from kernelgate import Kernel, Output, Package

TOLERANCE = torch.finfo(torch.float16).eps * 2 + 1
SIZES: dict[str, torch.Tensor | None] = {}


@triton.autotune(configs=[triton.Config({"BLOCK": n}, num_warps=4) for n in (64, 128)], key=["n"])
@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


class Module(nn.Module):
    """What a card may bring along."""


@torch.no_grad()
def helper(x: Tensor) -> Tensor:
    return F.silu(x)


class Heavy(Kernel):
    build = Package("my_kernels")
    cases = [dict(M=4, N=8, dtype="bf16")]

    def inputs(self, case, draw):
        index = torch.arange(case.M) INDEX
        return dict(x=draw(case.M, case.N).softmax(-1) * 2, y=-draw.round(draw.normal(case.N)), index=index)

    def outputs(self, case, x, y, index):
        return dict(a=Output(*x.shape), b=Output(case.M, dtype="int32"))

    def call(self, package, case, a, b, x, y, index):
        package.run(a, b, x, y, index)

    def oracle(self, case, x, y, index):
        return helper(x), index
'''


@pytest.mark.parametrize(
    ("index", "size"),
    [("", None), ("; index = draw.integers(0, 9, case.M, dtype='int32')", 64 + 16 + 16 + 64 + 16)],
    ids=["torch makes an input", "draw makes all inputs"],
)
def test_a_card_is_listed_without_torch_and_triton(tmp_path: Path, index: str, size: float | None) -> None:
    """What is installed is not looked at."""
    heavy = "import sys\nassert not any(hasattr(sys.modules.get(name), '__file__') for name in ('torch', 'triton'))\n"
    (tmp_path / "heavy.py").write_text(HEAVY.replace("INDEX", index) + heavy)
    card = registered.facts(tmp_path / "heavy.py")
    (case,) = card.suites["pr"]
    assert (card.build, case.id, case.bytes) == (Package("my_kernels"), "m4_n8_bf16", size)
    assert card.gives == ("a", "b", "index", "x", "y")


def test_what_hangs_on_torch_is_no_mistake_and_its_bytes_are_unknown(tmp_path: Path) -> None:
    lists = ('return dict(x=draw(case.M, case.N), bias', 'rows = int(torch.tensor([1]).max())\n'
             '    return dict(x=draw(rows, case.N), bias')  # fmt: skip
    assert registered.facts(write(tmp_path, lists)).target.bytes is None


def test_lists_of_tensors_count_and_what_is_computed_in_place_counts_once(tmp_path: Path) -> None:
    lists = ('x=draw(case.M, case.N), bias=draw(case.N, dtype="fp32")', "x=[draw(case.M)] * 3, bias=draw(9), n=4")
    more = "def outputs(self, case, **inputs):\n    return dict(bias=Output(9), y=Output(5, dtype='int8'))\n"
    card = registered.facts(write(tmp_path, lists, more=f"{more}in_place = ['bias']\n"))
    assert card.target.bytes == 3 * 4 * 2 + 9 * 2 + 5
