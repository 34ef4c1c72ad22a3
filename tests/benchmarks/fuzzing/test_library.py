"""The planted bugs fit the sources as they are, and there are enough of each kind."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.fuzzing import library
from benchmarks.fuzzing.bug import SOURCES, Bug, planted

LEAST = {"attention": 40, "rmsnorm": 15, "swiglu": 10, "int8_gemm": 10}
ASKED = {
    "mask", "tail", "layout", "barrier", "wait", "rescaling", "offset", "stream", "rounding", "special value",
    "data-dependent", "rare",
}  # fmt: skip


@pytest.mark.parametrize("bug", library.BUGS, ids=lambda bug: bug.id)
def test_a_bug_can_be_planted_in_the_sources_as_they_are(bug: Bug) -> None:
    """A source that has changed: give the bug's edit its new words, or take the bug out where it can be no more."""
    tree, _ = SOURCES[bug.kernel]
    changed = planted(bug, tree)
    assert changed
    assert all(text != path.read_text(encoding="utf-8") for path, text in changed.items())


def test_each_kernel_has_its_share_and_attention_every_kind() -> None:
    ids = Counter(bug.id for bug in library.BUGS)
    assert [id_ for id_, count in ids.items() if count > 1] == []
    real = [bug for bug in library.BUGS if bug.changes_results]
    names = Counter(kernel for kernel, _ in {(bug.kernel, bug.name) for bug in real})
    assert all(names[kernel] >= least for kernel, least in LEAST.items()), names
    assert {bug.kind for bug in real if bug.kernel == "attention"} >= ASKED
