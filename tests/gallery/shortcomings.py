"""Which questions today's comments do not answer truly, and why: the one list. What begins to answer must leave it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

SHORTCOMINGS: Mapping[str, tuple[Collection[str], tuple[str, ...]]] = {
    "After two or three processes a change far past the gate reads “Cannot tell … does not block”.": (
        ("how sure", "why", "blocks"),
        ("slower after *", "cause: *", "measured: cards/rmsnorm_slower", "measured: comparisons/slower_5pct"),
    ),
    "The same of a gain.": (("how sure",), ("faster after two processes",)),
    "Two processes that disagree by 1.2% hide a change of a third.": (("how much",), ("cause: fewer-blocks",)),
    "Gains are not told beside what is slower.": (
        ("how much",),
        ("two slower, two faster", "one slower, one far faster", "slower on one, faster on the other"),
    ),
    "Where nothing was profiled, it is not said that nothing was.": (
        ("why",),
        (
            *("one of four slower", "one case slower", "all slower", "far slower", "two slower, two faster"),
            *("one slower, one far faster", "each a little slower", "slower than half of the reference"),
            *("card changed", "slower on one GPU of two", "slower on one, faster on the other"),
            "slower, and a GPU lost",
        ),
    ),
    "The command that accepts a regression holds an ellipsis.": (
        ("now",),
        (
            *("one of four slower", "one case slower", "all slower", "far slower", "two slower, two faster"),
            *("one slower, one far faster", "slower on a CPU", "slower than half of the reference", "card changed"),
            *("measured: cards/swiglu_slower", "slower on one GPU of two", "slower on one, faster on the other"),
            "slower, and a GPU lost",
        ),
    ),
    "A doubt that the head may cause passes.": (
        ("blocks",),
        (
            *("two speeds", "contradicted by the witness", "base's timed output wrong"),
            *("cut short", "no fuzz", "a case missing"),
        ),
    ),
    "“tries again” of a time that no work of this size can take.": (("now",), ("faster than its arithmetic allows",)),
    "Fuzz is advised where it had passed.": (("now",), ("timed output wrong",)),
    "What can be done stands in no line of its own.": (("now",), ("not measured, by its *",)),
}


def expected(name: str) -> set[str]:
    """The questions that the comment of this situation does not answer."""
    lists = SHORTCOMINGS.values()
    return {question for asked, names in lists if any(fnmatchcase(name, one) for one in names) for question in asked}
