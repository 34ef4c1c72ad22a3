"""Which questions today's comments do not answer truly, and why: the one list. What begins to answer must leave it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

SHORTCOMINGS: Mapping[str, tuple[Collection[str], tuple[str, ...]]] = {
    "Two processes that disagree by 1.2% hide a change of a third.": (
        ("how much", "how sure", "why"),
        ("cause: fewer-blocks",),
    ),
}


def expected(name: str) -> set[str]:
    """The questions that the comment of this situation does not answer."""
    lists = SHORTCOMINGS.values()
    return {question for asked, names in lists if any(fnmatchcase(name, one) for one in names) for question in asked}
