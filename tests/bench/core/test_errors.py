"""How an error is quoted in a sentence of ours."""

from __future__ import annotations

import json
import re

import pytest

from kernelgate.bench import record
from kernelgate.bench.core.errors import RecordError, first_line


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("no such axis"), "no such axis"),
        (RuntimeError("\n  an illegal access\nCompile with TORCH_USE_CUDA_DSA\n"), "an illegal access"),
        (AssertionError(), "AssertionError"),
        (OSError("  \n"), "OSError"),
    ],
)
def test_the_first_line_of_an_error(error: Exception, line: str) -> None:
    assert first_line(error) == line


def test_what_does_not_fit_is_one_short_line_whatever_its_keys_hold() -> None:
    strange = {f"{number}\n::error::{'x' * 5000}": 1 for number in range(20)}
    with pytest.raises(RecordError) as refused:
        record.from_json(json.dumps(strange))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1000
    assert re.search(r"; and \d+ more$", str(refused.value))
