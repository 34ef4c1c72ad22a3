from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import ValidationError

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import OutputError, UsageError
from kernelgate.ci.lab import advice, folder, log
from kernelgate.ci.lab.log import Closed, Event, SessionCost, SessionNote
from tests import disks
from tests.ci.lab import session_events as made


def test_what_is_added_is_read_and_several_writers_lose_nothing(tmp_path: Path) -> None:
    begun = folder.create(tmp_path, made.opened())
    notes = [SessionNote(at=made.clock(number), said=f"note {number}") for number in range(20)]
    with ThreadPoolExecutor(len(notes)) as threads:
        list(threads.map(lambda note: folder.append(begun.folder, note), notes))
    said = {event.said for event in folder.read(begun.folder).events if isinstance(event, SessionNote)}
    assert said == {note.said for note in notes}


def test_a_broken_line_is_named_and_what_follows_half_a_line_stays_whole(tmp_path: Path) -> None:
    begun = folder.create(tmp_path, made.opened())
    with (begun.folder / "log.jsonl").open("a") as file:
        file.write('{"event":"note","sa')  # as a machine that lost its power leaves it
    folder.append(begun.folder, SessionNote(said="later"))
    with pytest.raises(folder.SessionError, match=r"log\.jsonl:2 is no event of a session"):
        folder.read(begun.folder)
    assert "later" in (begun.folder / "log.jsonl").read_text().splitlines()[2]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (SessionCost.model_construct(of="gpu", usd=math.nan), "cost.usd: "),
        (SessionNote(said="caf\udce9"), "it is no text: .*LC_ALL=C.UTF-8"),
    ],
)
def test_what_nobody_could_read_again_is_not_logged(tmp_path: Path, event: Event, said: str) -> None:
    begun = folder.create(tmp_path, made.opened())
    before = (begun.folder / "log.jsonl").read_bytes()
    with pytest.raises(folder.SessionError, match=f"nothing was logged.*{said}"):
        folder.append(begun.folder, SessionNote(said="first"), event)
    assert (begun.folder / "log.jsonl").read_bytes() == before
    folder.append(begun.folder, SessionNote(said="later"))
    assert len(folder.read(begun.folder).events) == 2


def test_a_log_that_cannot_be_read_stops_no_other_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder.create(tmp_path, made.opened(name="whole"))
    for name, torn in (("torn", b'{"event":"ope'), ("binary", b"\xff\xfe"), ("empty", b"")):
        files.write(tmp_path / folder.FOLDER / name / "log.jsonl", torn)
    assert [one.name for one in folder.every(tmp_path)] == ["whole"]
    assert folder.named(tmp_path, None).name == "whole"
    assert advice.table(tmp_path / folder.FOLDER).tries == 0
    said = capsys.readouterr().err
    assert [said.count(f"{name}/log.jsonl") for name in ("torn", "binary", "empty")] == [1, 1, 1], "once for all three"
    with pytest.raises(folder.SessionError, match="torn"):
        folder.named(tmp_path, "torn")


def test_the_session_that_is_open_needs_no_name(tmp_path: Path) -> None:
    folder.create(tmp_path, made.opened(name="told", source="recorded"))
    with pytest.raises(UsageError, match="no session is open: begin one"):
        folder.named(tmp_path, None)
    first = folder.create(tmp_path, made.opened(name="first"))
    assert folder.named(tmp_path, None).name == "first"
    folder.create(tmp_path, made.opened(name="second"))
    with pytest.raises(UsageError, match=r"2 sessions are open \(first, second\)"):
        folder.named(tmp_path, None)
    folder.append(first.folder, Closed(why="done", said="enough"))
    assert folder.named(tmp_path, None).name == "second"
    for name, why in (("first", "is closed"), ("told", "was recorded from a document")):
        with pytest.raises(UsageError, match=f"{name} {why}"):
            folder.still_open(tmp_path, name)


def test_a_session_that_finds_no_room_takes_no_name(tmp_path: Path) -> None:
    with disks.full(), pytest.raises(OutputError, match="cannot be written: "):
        folder.create(tmp_path, made.opened())
    assert folder.create(tmp_path, made.opened()).is_open


def test_an_event_is_one_line_that_reads_back_as_it_was_and_the_first_names_the_schema() -> None:
    tried = made.tried(1, -7.0, what="larger tile,\nas said")
    written = log.line(tried)
    assert written.count("\n") == 1
    assert log.EVENT.validate_json(written) == tried
    assert "null" not in written
    with pytest.raises(ValidationError, match="schema"):
        log.EVENT.validate_json(log.line(made.opened()).replace("session/1", "session/2"))
