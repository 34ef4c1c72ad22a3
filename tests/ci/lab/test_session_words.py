from __future__ import annotations

import pytest

from kernelgate.ci.lab import session_words as words
from tests.ci.lab import session_events as made


@pytest.mark.parametrize(
    ("change_pct", "advised", "ends"),
    [
        (-2.3, "revert", "(guidance.keep_from)"),
        (-2.3, "keep", "`kernelgate session keep`"),
        (4.7, "revert", "`kernelgate session revert`"),
    ],
)
def test_a_gain_that_is_not_kept_is_told_why(change_pct: float, advised: str, ends: str) -> None:
    assert words.of_try(made.tried(1, change_pct, advised=advised)).endswith(ends)


def test_what_failed_is_told_no_reason_of_gains() -> None:
    failed = made.tried(1, 0, outcomes=(), failed="build", said="does not compile", advised="revert")
    assert words.of_try(failed).splitlines()[-1] == "By default: `kernelgate session revert`"
