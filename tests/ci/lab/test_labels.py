"""Which label of a try counts, where reviewers corrected it more than once."""

from __future__ import annotations

from kernelgate.ci.lab import figures, labels
from kernelgate.ci.lab.log import Corrected
from tests.ci.lab import session_events as made

TRIED = made.tried(1, -5, action="swizzle", bottleneck="l2")
EARLIER = Corrected(at=made.clock(20), number=1, action="larger-tiles", bottleneck="dram", by="ada", why="so")
LATER = Corrected(at=made.clock(21), number=1, action="wider-loads", by="bob", why="or so")


def test_the_later_correction_counts_wherever_a_merge_put_it_and_takes_back_no_other_label() -> None:
    for order in ((EARLIER, LATER), (LATER, EARLIER)):
        events = (made.opened(), TRIED, made.tried(2, 1, action="swizzle"), *order)
        assert [(one.action, one.bottleneck) for one in labels.corrected(events)] == [
            ("wider-loads", "dram"),
            ("swizzle", None),
        ]
        assert figures.try_states(events)[0].action == "wider-loads"
        assert figures.try_states(events)[0].bottleneck == "dram"
