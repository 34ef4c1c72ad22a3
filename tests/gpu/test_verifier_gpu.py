"""What the verifier notices on a GPU, where memory cannot be sealed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.bench.timing import verified
from tests.bench.timing.verified import AXES, ROWS

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(120)]


@pytest.mark.parametrize("changed", [False, True])
def test_an_input_that_was_changed_is_said(tmp_path: Path, changed: bool) -> None:
    with verified.opened(verified.write(tmp_path, ROWS), AXES, device="cuda", shared=False) as case:
        case.turn(case.work, 8)
        if changed:
            case.given(0)["y"][0, 0] += 1
        case.plan(0, "new")
        assert case.turn(case.work, 8) == 0
        assert (case.verifier.close().disturbed is not None) == changed


def test_whoever_writes_outside_of_an_output_is_wrong(tmp_path: Path) -> None:
    with verified.opened(verified.write(tmp_path, ROWS), AXES, device="cuda", shared=False) as case:
        place = case.pool.outputs["out"]
        planned = case.plan(4)
        for window, slot in zip(planned.windows, planned.slots, strict=True):
            case.work(case.given(window, slot), case.outs(slot), 0)
        case.written.part(place.offset + 2 * place.step - 4, 4).view(torch.float32).fill_(float("nan"))
        case.check(("base", "base", "head", "base"))
        checked = case.verifier.close()
        assert (checked.calls["base"].failed, checked.calls["head"].failed) == (0, 1)
