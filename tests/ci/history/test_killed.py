"""Real processes add records, the same ones at once, and are killed at any moment: nothing is lost or half there."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelgate.ci.history import database, keep, store
from kernelgate.ci.history.keep import Archive
from tests.ci.history.conftest import QUICK
from tests.ci.history.entries import a_record, as_file, contents

RECORDS, WRITERS, KILLS = 30, 2, 5
ADDING = """
import sys
from pathlib import Path
from kernelgate.ci.history import database, keep, store
from tests.ci.history.conftest import QUICK
folder, records = Path(sys.argv[1]), sorted(Path(sys.argv[2]).glob("*.json"))
archive = keep.Archive(store.at(str(folder)), database.at(folder / "index.sqlite"), QUICK)
print("ready", flush=True)
for path in records[int(sys.argv[3]):] + records[:int(sys.argv[3])]:
    keep.add_record(archive, path.read_bytes(), path.name)
    print(store.name_of(path.read_bytes()), flush=True)
"""


@pytest.mark.slow
def test_writers_that_are_killed_lose_nothing_that_they_have_added(tmp_path: Path) -> None:
    records, folder = tmp_path / "records", tmp_path / "history"
    records.mkdir()
    for day in range(1, RECORDS + 1):
        data = as_file(a_record(day=day))
        (records / f"{day:02}.json").write_bytes(data)
        if day % 2:  # judged before, so that nearly all of a writer's time is the index's
            keep.add_record(Archive(store.at(str(folder)), database.at(tmp_path / "other"), QUICK), data, "run.json")
    rng = random.Random(1)
    for _ in range(KILLS):
        words = [[sys.executable, "-c", ADDING, folder, records, str(rng.randrange(RECORDS))] for _ in range(WRITERS)]
        writers = [subprocess.Popen(one, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for one in words]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n", writer.communicate()[1]
        time.sleep(rng.uniform(0, 0.15))
        said = set()
        for writer in writers:
            writer.kill()
            out, errors = writer.communicate()
            assert errors == ""
            said |= set(out.split())
        archive = Archive(store.at(str(folder)), database.at(folder / "index.sqlite"), QUICK)
        held = contents(archive.database)
        assert len(held["points"]) == 2 * len(held["comparisons"]), "no half of a record"
        assert {name for name in said if not any(name in row for row in held["points"])} == set()
        for kind in ("records", "judgements"):
            for name in store.names(archive.store, kind):  # type: ignore[arg-type]
                assert store.get(archive.store, kind, name)  # type: ignore[arg-type]
    for path in sorted(records.iterdir()):
        keep.add_record(archive, path.read_bytes(), path.name)
    added = contents(archive.database)
    assert len(added["points"]) == 2 * RECORDS
    keep.rebuild(archive, pytest.fail)
    assert contents(archive.database) == added
