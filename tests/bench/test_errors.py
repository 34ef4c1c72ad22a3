"""How an error is quoted in a sentence of ours."""

from __future__ import annotations

import pytest

from kernelgate.bench.errors import first_line


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
