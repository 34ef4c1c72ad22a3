from __future__ import annotations

import pytest
from pydantic import ValidationError

from kernelgate.ci.lab import log


def test_an_event_is_one_line_and_reads_back_as_it_was() -> None:
    tried = log.TriedChange(
        at="2026-11-22T20:00:00Z", number=1, what="larger tile,\nas said", why="reuse", said="7% faster"
    )

    written = log.line(tried)

    assert written.count("\n") == 1
    assert log.EVENT.validate_json(written) == tried
    assert "null" not in written


def test_the_first_line_names_the_schema() -> None:
    opened = log.Opened(at=None, name="first", objective="faster", source="recorded")

    assert '"schema":"kernelgate.session/1"' in log.line(opened)
    with pytest.raises(ValidationError, match="schema"):
        log.EVENT.validate_json(log.line(opened).replace("session/1", "session/2"))
