"""What a gate or a try is expected to take comes from times of the same thing, or from nowhere."""

from __future__ import annotations

from pathlib import Path

from kernelgate.ci.lab import watching
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import Event
from tests.ci.lab import session_events as made


def of(name: str, *events: Event, **fields: object) -> Session:
    return Session(Path(name), (made.opened(name=name, gpu="NVIDIA H200", **fields), *events))


NEW = of("new")


def test_the_same_kernel_on_the_same_device_says_it_and_a_script_or_a_document_does_not() -> None:
    earlier = of("earlier", made.gate("build", 2, seconds=40.0), made.tried(1, -5, seconds=50.0))
    search = of("search", made.gate("profile", 0, seconds=None), made.tried(1, -5, seconds=1.1))
    told = of("told", made.gate("build", 2, seconds=3600.0), source="recorded")
    other = of("other", made.gate("build", 2, seconds=9.0), card="another")
    every = (NEW, search, told, other)

    assert watching.expected_seconds("build", NEW, every) is None
    assert watching.expected_seconds(None, NEW, every) is None
    assert watching.expected_seconds("build", NEW, (*every, earlier)) == 40
    assert watching.expected_seconds(None, NEW, (*every, earlier)) == 50
    assert watching.expected_seconds("performance", NEW, (*every, earlier)) is None
