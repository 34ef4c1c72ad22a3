"""Which cases a call means, and what a record holds of a card."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.kernel import cards
from kernelgate.bench.kernel.cards import TOLERANCES, Cards
from tests import registered

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


def test_an_id_that_two_cards_know_must_say_which(two: Cards) -> None:
    with pytest.raises(UsageError, match="2 cards have a case m4_fp16: write one/m4_fp16 or two/m4_fp16"):
        chosen(two, "m4_fp16")
    assert chosen(two, "two/m4_fp16", "one/m8_fp16", "two/m4_fp16") == ["two/m4_fp16", "one/m8_fp16"]
    assert chosen(two, "m16_bf16") == ["two/m16_bf16"], "one that lists it comes before one that could have it"


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
    with pytest.raises(UsageError, match="'m4' is not a case of any card; cases are written like one: m4_fp16, two"):
        chosen(two, "m4")
    with pytest.raises(UsageError, match="'three/m4_fp16' is not a case of any card"):
        chosen(two, "three/m4_fp16")
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
