"""The planted bugs fit the sources as they are, and there are enough of each kind."""

from __future__ import annotations

import pytest

from benchmarks.fuzzing import library
from benchmarks.fuzzing.bug import SOURCES, Bug, planted


@pytest.mark.parametrize("bug", library.BUGS, ids=lambda bug: bug.id)
def test_a_bug_can_be_planted_in_the_sources_as_they_are(bug: Bug) -> None:
    """A source that has changed: give the bug's edit its new words, or take the bug out where it can be no more."""
    tree, _ = SOURCES[bug.kernel]
    changed = planted(bug, tree)
    assert changed
    assert all(text != path.read_text(encoding="utf-8") for path, text in changed.items())
