"""What is right for a pool: how precise it is, how much of it there is, and that it follows what changes place."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.timing import checking, references, windows
from kernelgate.bench.timing.references import Way
from tests.bench.timing import verified
from tests.bench.timing.verified import AXES, ROWS, SUM, VerifiedCase


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "CHEAP_BYTES", 1 << 14)


def way(case: VerifiedCase) -> Way:
    found = case.verifier.way
    assert found is not None
    return found


# ----------------------------------------------------------------------------------------------------------------------
# Precision
# ----------------------------------------------------------------------------------------------------------------------

CANCELS = ROWS.replace("return x + y", "return (x + 3e4) - 3e4 + y")


@pytest.mark.parametrize(("body", "wide"), [(ROWS, False), (CANCELS, True)], ids=["harmless", "cancels"])
def test_an_oracle_that_float32_is_too_coarse_for_is_asked_in_float64(tmp_path: Path, body: str, wide: bool) -> None:
    with verified.opened(verified.write(tmp_path, body), AXES) as case:
        assert way(case).wide is wide
        right = case.right(3)["out"]
        found = checking.right_of(case.pool, case.verifier.references, 3)
        assert (found.values["out"].reshape(right.shape) - right).abs().max() < 1e-6


def test_an_oracle_that_takes_float64_alone(tmp_path: Path) -> None:
    body = ROWS.replace("return x + y", "assert x.dtype == torch.float64\n    return x + y")
    with verified.opened(verified.write(tmp_path, body), AXES) as case:
        assert way(case).wide


def test_the_way_is_found_once_for_a_case(tmp_path: Path) -> None:
    with verified.opened(verified.write(tmp_path, ROWS), AXES) as case:
        before = way(case)
        case.verifier.redraw()
        assert way(case) is before


@pytest.mark.parametrize(("body", "dtype"), [(ROWS, torch.float32), (ROWS.replace("x + y", "x > y"), torch.bool)])
def test_floats_are_kept_in_float32_and_all_else_as_it_is(tmp_path: Path, body: str, dtype: torch.dtype) -> None:
    body += "def outputs(self, case, x, y):\n    return Output(case.M, case.N, dtype='bool')\n" if ">" in body else ""
    for other in (body, body.partition("independent")[0] + body.partition("out=0)\n")[2]):
        with verified.opened(verified.write(tmp_path / str(len(other)), other), AXES) as case:
            found = checking.right_of(case.pool, case.verifier.references, 0)
            assert found.values["out"].dtype == dtype


def test_what_is_not_finite_is_known(tmp_path: Path) -> None:
    for body in (ROWS, SUM):
        for said in ("x + y", "x / y.clamp(min=0)"):
            card = verified.write(tmp_path / f"{len(body)}{len(said)}", body.replace("x + y", said))
            with verified.opened(card, AXES) as case:
                assert case.verifier.references.finite is (said == "x + y")


def test_an_oracle_that_looks_at_other_rows_is_one_sentence(tmp_path: Path) -> None:
    body = ROWS.replace("return x + y", "return (x + y).sum(0)")
    card, said = verified.write(tmp_path, body), r"oracle\(\) gave 16 elements of out for \d+ entries, not \d+"
    with pytest.raises(UsageError, match=said), verified.opened(card, AXES):
        pytest.fail("it cannot be prepared")


# ----------------------------------------------------------------------------------------------------------------------
# How much of it there is
# ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no time to ask the oracle."""
    monkeypatch.setattr(references, "REFERENCE_S", {"cpu": 0.0})
    monkeypatch.setattr(references, "PROVEN_ELEMENTS", 1)


@pytest.mark.usefixtures("slow")
def test_where_the_oracle_is_slow_some_entries_have_references(tmp_path: Path) -> None:
    """Others each time that the pool is drawn."""
    with verified.opened(verified.write(tmp_path, ROWS), {**AXES, "M": 64}) as case:
        known = case.verifier.references
        assert not known.complete
        assert len(known.entries) == 16, "twice an eighth of a case"
        assert bool((known.entries[1:] > known.entries[:-1]).all())
        entries_are_right(case)
        order = case.pool.shuffle(case.verifier.arena)
        assert order is not None
        known.follow(order)
        entries_are_right(case)
        before = known.entries
        case.verifier.redraw()
        assert case.verifier.references.entries.tolist() != before.tolist()
        entries_are_right(case)


def entries_are_right(case: VerifiedCase) -> None:
    """Each window's, by the oracle's whole answer for it."""
    met = set()
    for window in range(case.pool.shape.windows):
        if not all(checking.comparable(case.pool, case.verifier.references, [window])):
            continue
        found = checking.right_of(case.pool, case.verifier.references, window)
        assert found.entries is not None
        met.update((found.entries + case.pool.shape.size.start(window)).tolist())  # type: ignore[union-attr]
        torch.testing.assert_close(found.values["out"].double(), case.right(window)["out"][found.entries])
    assert met == set(case.verifier.references.entries.tolist())


@pytest.mark.usefixtures("slow")
def test_where_the_oracle_is_slow_two_sets_have_references(tmp_path: Path) -> None:
    with verified.opened(verified.write(tmp_path, SUM), AXES) as case:
        known = case.verifier.references
        assert [bool(one) for one in known.sets] == [True, True] + [False] * (case.pool.shape.windows - 2)
        assert not known.complete
        order = case.pool.shuffle(case.verifier.arena)
        assert order is not None
        known.follow(order)
        for window in range(case.pool.shape.windows):
            known_at = order.tolist()[window] <= 1
            assert checking.comparable(case.pool, known, [window]) == [known_at]
            if known_at:
                found = checking.right_of(case.pool, known, window)
                torch.testing.assert_close(found.values["out"].double(), case.right(window)["out"])


def test_the_oracle_is_asked_in_slices_that_fit_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "asked = []\n" + ROWS.replace("return x + y", "self.asked.append(len(x))\n    return x + y")
    monkeypatch.setattr(references, "CHUNK_ELEMENTS", 5 * 16)
    with verified.opened(verified.write(tmp_path, body), AXES) as case:
        assert case.verifier.references.complete
        asked: list[int] = getattr(case.kernel, "asked")  # noqa: B009 - of this card alone
        assert max(asked[:-1]) == 5, "the last one is the reference, which is timed whole"
        x, y = (case.pool.entries(case.verifier.arena, name) for name in ("x", "y"))
        torch.testing.assert_close(case.verifier.references.values["out"], x + y)


def test_a_small_case_is_not_judged_by_what_one_call_of_the_oracle_takes(tmp_path: Path) -> None:
    """Which is the same for one entry and for hundreds."""
    body = "asked = []\n" + ROWS.replace("return x + y", "self.asked.append(len(x))\n    return x + y")
    with verified.opened(verified.write(tmp_path, body), {**AXES, "M": 1}) as case:
        asked: list[int] = getattr(case.kernel, "asked")  # noqa: B009 - of this card alone
        assert min(asked[:-1]) >= 100
        assert case.verifier.references.complete
