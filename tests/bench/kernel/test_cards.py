"""Which cases a call means, and which card judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.build.library import Library, Manifest, Sides
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.kernel import axes, cards, commit
from kernelgate.bench.kernel.axes import AxisValue
from kernelgate.bench.kernel.cards import TOLERANCES, Cards
from kernelgate.bench.kernel.commit import Compared
from tests import registered

pytestmark = pytest.mark.usefixtures("cards_in_forks")
BODY = """
cases = [dict(M=4, dtype="fp16"), dict(M=8, dtype="fp16")]
def inputs(self, case, draw):
    return dict(x=draw(case.M))
def call(self, ops, case, out, x):
    ops.copy(x, out)
def oracle(self, case, x):
    return x
"""


@pytest.fixture
def two(tmp_path: Path) -> Cards:
    """Two cards that share the ids of their cases; one has more suites."""
    registered.write_card(tmp_path, "one", BODY)
    registered.write_card(tmp_path, "two", f"{BODY}suites = dict(full=[dict(M=16, dtype='bf16')])\n")
    return cards.read(tmp_path)


def chosen(known: Cards, *ids: str, device: str = "cuda", suite: str | None = None) -> list[str]:
    found = cards.select(known, device, suite, ids)  # type: ignore[arg-type]
    return [f"{one.card.name}/{one.case.id}" for one in found]


def test_without_words_the_devices_own_suite_of_every_card(two: Cards) -> None:
    assert chosen(two) == ["one/m4_fp16", "one/m8_fp16", "two/m4_fp16", "two/m8_fp16"]
    assert chosen(two, device="cpu") == [], "neither has a path for the CPU"
    assert chosen(two, suite="full") == ["two/m16_bf16"]


def test_a_case_that_no_suite_has(two: Cards) -> None:
    found = cards.select(two, "cuda", None, ["one/m100_fp32", "two/m8_fp16"])
    assert [(one.case.id, one.case.axes) for one in found] == [
        ("m100_fp32", {"M": 100, "dtype": "fp32"}),
        ("m8_fp16", {"M": 8, "dtype": "fp16"}),
    ]
    assert found[0].case.bytes == 2 * 100 * 4, "its facts are asked of the card"
    with pytest.raises(UsageError, match="2 cards have a case m100_fp32"):
        chosen(two, "m100_fp32")


def test_what_cannot_be_chosen(two: Cards) -> None:
    for wrong in ("m4", "three/m4_fp16"):
        with pytest.raises(
            UsageError, match=f"'{wrong}' is not a case of any card; cases are written like one: m4_fp16"
        ):
            chosen(two, wrong)
    with pytest.raises(UsageError, match="there is no suite 'nightly'; there are cpu, full, pr"):
        chosen(two, suite="nightly")


def test_what_a_record_holds_of_a_case(tmp_path: Path) -> None:
    more = "def flops(self, case):\n    return 2 * case.M\ndef label(self, case):\n    return f'{case.M} rows'\n"
    card = registered.facts(registered.write_card(tmp_path, "one", BODY + more))
    kept = card.recorded_case(card.target)
    assert (kept.card, kept.id, kept.label) == ("one", "m4_fp16", "4 rows")
    assert kept.work == record.Work(flops=8, bytes=16)
    assert kept.tolerance == TOLERANCES["fp16"]
    strict = registered.write_card(tmp_path, "one", f"{BODY}def tolerance(self, case):\n    return 0, 0.5\n")
    card = registered.facts(strict)
    assert card.recorded_case(card.target).tolerance == record.Tolerance(atol=0, rtol=0.5)


@pytest.mark.parametrize(
    ("case", "id_", "label"),
    [
        ({"S": 512, "B": 32, "H": 8, "D": 64, "dtype": "fp16", "causal": True}, "s512_b32_h8_d64_fp16_causal",
         "S=512 B=32 H=8 D=64 fp16 causal"),
        ({"M": 4, "scale": 0.125, "layout": "NHWC", "dtype": "fp8_e4m3"}, "m4_scale0.125_layout-NHWC_fp8_e4m3",
         "M=4 scale=0.125 layout=NHWC fp8_e4m3"),
        ({"M": -3, "eps": 1e-05, "x": 2.0}, "m-3_eps1e-05_x2", "M=-3 eps=1e-05 x=2"),
    ],
)  # fmt: skip
def test_ids_and_labels_as_the_documents_show_them(case: dict[str, AxisValue], id_: str, label: str) -> None:
    assert axes.case_id(case) == id_
    assert axes.parse(id_, case) == case
    assert axes.label(case) == label


def test_what_is_written_otherwise_is_no_id() -> None:
    example = {"S": 512, "B": 32, "dtype": "fp16", "causal": False}
    for wrong in ("", "s_b1_fp16", "s512_b32_fp8", "b1_s512_fp16", "s٣_b1_fp16"):
        assert axes.parse(wrong, example) is None


@pytest.mark.parametrize(
    ("axis", "value", "why"),
    [
        ("1M", 1, "is not a name of letters and digits"),
        ("items", 1, "no axis may be called 'items'"),
        ("M", None, "it may be a number, a word, True or False"),
        ("M", float("nan"), "a number must be finite"),
        ("dtype", "fp15", "it may be fp32, fp16, bf16"),
        ("layout", "a_b", "a word in an id has letters, digits"),
    ],
)
def test_what_cannot_stand_in_an_id(axis: str, value: object, why: str) -> None:
    assert why in (axes.mistake(axis, value) or "")


# The default branch's card judges, with each commit's own call; and what is said where that cannot be

SUM = """
cases = [dict(M=4, dtype="fp16")]
cpu_cases = cases
def inputs(self, case, draw):
    return dict(x=draw(case.M), y=draw(case.M))
def call(self, ops, case, out, x, y):
    ops.add(x, y, out)
def oracle(self, case, x, y):
    return x + y
"""
MORE = ("out, x, y)", "out, x, y, bias, eps=1e-5)")


def library(folder: Path, body: str) -> Library:
    """One commit's, with its card."""
    card = registered.write_card(folder, "kind", body)
    manifest = Manifest.model_construct(card="kind", key=f"{folder}", card_sha256=registered.facts(card).sha256)
    return Library(folder, manifest, cached=True, card_file=card)


def judged(tmp_path: Path, base: str, head: str, judge: str | None = SUM) -> Compared:
    sides = Sides(library(tmp_path / "base", base), library(tmp_path / "head", head))
    if judge is not None:
        registered.write_card(tmp_path / "default", "kind", judge)
    (found,) = commit.judged(cards.read(tmp_path / "default"), {"kind": sides}, "default branch")
    return found


def codes(found: Compared) -> list[str | None]:
    return [note.code for note in found.notes]


def test_the_default_branchs_card_judges(tmp_path: Path) -> None:
    found = judged(tmp_path, SUM, SUM)
    assert found.card.file == tmp_path / "default" / "kind.py"
    assert (found.source, found.notes) == ("default branch", ())
    assert found.sides.base is not None


def test_a_card_that_is_new_judges_itself_and_can_block_nothing(tmp_path: Path) -> None:
    found = judged(tmp_path, SUM, SUM, judge=None)
    assert found.card.file == tmp_path / "head" / "kind.py"
    assert (found.source, codes(found)) == ("head", ["no_card_on_base"])


def test_a_call_of_the_head_that_needs_more_is_measured_alone_by_its_own_card(tmp_path: Path) -> None:
    new = SUM.replace(*MORE).replace("y=draw(case.M))", "y=draw(case.M), bias=draw(case.M))")
    found = judged(tmp_path, SUM, new.replace("case, x, y)", "case, x, y, bias)"))
    assert (found.sides.base, found.source) == (None, "head")
    assert found.card.file == tmp_path / "head" / "kind.py"
    assert codes(found) == ["card_changed", "head_alone"]
    assert found.notes[1].text == found.sides.why_alone
    assert "now takes bias, which the card of the default branch does not give" in found.notes[1].text


def test_a_base_whose_call_does_not_fit_is_left_out(tmp_path: Path) -> None:
    """Such as that of a branch which began before the inputs were renamed."""
    found = judged(tmp_path, SUM.replace(*MORE), SUM)
    assert (found.sides.base, found.source, codes(found)) == (None, "default branch", ["head_alone"])
    assert found.sides.why_alone == "the base's call() takes bias, which the card does not give"
