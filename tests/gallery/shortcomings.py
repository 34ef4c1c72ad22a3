"""Which questions today's comments do not answer truly, and why: the one list. What begins to answer must leave it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

SHORTCOMINGS: Mapping[str, tuple[Collection[str], tuple[str, ...]]] = {
    "A likely change has no profile in a record that was cut to its first processes.": (
        ("why",),
        ("measured: cards/rmsnorm_slower",),
    ),
}


def expected(name: str) -> set[str]:
    """The questions that the comment of this situation does not answer."""
    lists = SHORTCOMINGS.values()
    return {question for asked, names in lists if any(fnmatchcase(name, one) for one in names) for question in asked}
