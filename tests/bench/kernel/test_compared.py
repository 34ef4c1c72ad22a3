"""Which card judges: the default branch's, with each commit's own call; and what is said where that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.build.library import Library, Manifest, Sides
from kernelgate.bench.kernel import cards, commit
from kernelgate.bench.kernel.cards import Cards
from kernelgate.bench.kernel.commit import Compared, Source
from tests import registered

pytestmark = pytest.mark.usefixtures("cards_in_forks")

BODY = """
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


def library(folder: Path, body: str | None, name: str = "kind") -> Library:
    """One commit's, with its card; None is a library of the cache, which brings none."""
    card = None if body is None else registered.write_card(folder, name, body)
    sha256 = None if card is None else registered.facts(card).sha256
    manifest = Manifest.model_construct(card=name, key=f"{folder}", card_sha256=sha256)
    return Library(folder, manifest, cached=True, card_file=card)


def default_branch(tmp_path: Path, body: str | None = BODY) -> Cards:
    if body is not None:
        registered.write_card(tmp_path / "default", "kind", body)
    return cards.read(tmp_path / "default")


def judged(
    tmp_path: Path,
    base: str | None,
    head: str | None,
    judge: str | None = BODY,
    source: Source | None = "default branch",
) -> Compared:
    sides = Sides(library(tmp_path / "base", base), library(tmp_path / "head", head))
    (found,) = commit.judged(default_branch(tmp_path, judge), {"kind": sides}, source)
    return found


def codes(found: Compared) -> list[str | None]:
    return [note.code for note in found.notes]


def test_the_default_branchs_card_judges(tmp_path: Path) -> None:
    found = judged(tmp_path, BODY, BODY)
    assert found.card.file == tmp_path / "default" / "kind.py"
    assert (found.source, found.notes) == ("default branch", ())
    assert (found.recorded.source, found.recorded.hash) == ("default branch", found.card.sha256)
    assert found.sides.base is not None


def test_a_changed_card_counts_after_the_merge(tmp_path: Path) -> None:
    found = judged(tmp_path, BODY, BODY.replace("return x + y", "return x - y"))
    assert codes(found) == ["card_changed"]
    assert found.card.file.parent.name == "default"
    assert "the default branch's card measured; the new one counts after the merge" in found.notes[0].text


def test_a_card_that_is_new_judges_itself_and_can_block_nothing(tmp_path: Path) -> None:
    found = judged(tmp_path, BODY, BODY, judge=None)
    assert found.card.file == tmp_path / "head" / "kind.py"
    assert (found.source, codes(found)) == ("head", ["no_card_on_base"])
    assert "nothing that was measured with it can block" in found.notes[0].text


def test_a_call_of_the_head_that_needs_more_is_measured_alone_by_its_own_card(tmp_path: Path) -> None:
    new = BODY.replace(*MORE).replace("y=draw(case.M))", "y=draw(case.M), bias=draw(case.M))")
    found = judged(tmp_path, BODY, new.replace("case, x, y)", "case, x, y, bias)"))
    assert (found.sides.base, found.source) == (None, "head")
    assert found.card.file == tmp_path / "head" / "kind.py"
    assert codes(found) == ["card_changed", "head_alone"]
    assert found.notes[1].text == found.sides.why_alone
    assert "now takes bias, which the card of the default branch does not give" in found.notes[1].text


def test_a_base_whose_call_does_not_fit_is_left_out(tmp_path: Path) -> None:
    """Such as that of a branch which began before the inputs were renamed."""
    found = judged(tmp_path, BODY.replace(*MORE), BODY)
    assert (found.sides.base, found.source, codes(found)) == (None, "default branch", ["head_alone"])
    assert found.card.file.parent.name == "default"
    assert found.sides.why_alone == "the base's call() takes bias, which the card does not give"
