"""What a gate or a try is expected to take comes from times of the same thing, or from nowhere."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernelgate.ci.history import database, keep, store
from kernelgate.ci.history.entry import KeptSession
from kernelgate.ci.history.keep import Archive
from kernelgate.ci.lab import log, watching
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import Event
from kernelgate.ci.pipeline import prior
from kernelgate.ci.policy.policy import Policy
from tests.ci.lab import session_events as made


def of(name: str, *events: Event, **fields: object) -> Session:
    return Session(Path(name), (made.opened(name=name, gpu="NVIDIA H200", **fields), *events))


NEW = of("new")


def test_the_same_kernel_on_the_same_device_says_it_and_a_script_or_a_document_does_not(tmp_path: Path) -> None:
    earlier = of("earlier", made.gate("build", 2, seconds=40.0), made.tried(1, -5, seconds=50.0))
    search = of("search", made.gate("profile", 0, seconds=None), made.tried(1, -5, seconds=1.1))
    told = of("told", made.gate("build", 2, seconds=3600.0), source="recorded")
    other = of("other", made.gate("build", 2, seconds=9.0), card="another")
    every = (NEW, search, told, other)

    assert watching.expected_seconds("build", NEW, tmp_path, every) is None
    assert watching.expected_seconds(None, NEW, tmp_path, every) is None
    assert watching.expected_seconds("build", NEW, tmp_path, (*every, earlier)) == 40
    assert watching.expected_seconds(None, NEW, tmp_path, (*every, earlier)) == 50
    assert watching.expected_seconds("performance", NEW, tmp_path, (*every, earlier)) is None


def test_the_history_says_it_of_this_repository_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "one")):
        subprocess.run([*git, *words], check=True)
    base = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    logs = {
        "branch": of("branch", made.gate("build", 2, seconds=40.0), base=base),
        "elsewhere": of("elsewhere", made.gate("build", 2, seconds=9.0)),
    }
    index = tmp_path / prior.INDEX
    monkeypatch.setenv(prior.DATABASE, str(index))
    assert watching.expected_seconds("build", NEW, tmp_path, ()) is None, "nothing is there to be read"
    archive = Archive(store.at(str(tmp_path / "store")), database.at(index), Policy())
    found = [KeptSession(name=name, log="".join(map(log.line, one.events))) for name, one in logs.items()]
    keep.add_sessions(archive, found)

    assert watching.expected_seconds("build", NEW, tmp_path, ()) == 40
    mine = of("mine", made.gate("build", 2, seconds=30.0))
    assert watching.expected_seconds("build", NEW, tmp_path, (mine,)) == 30
    monkeypatch.delenv(prior.DATABASE)
    assert watching.expected_seconds("build", NEW, tmp_path, ()) is None
    archive.database.engine.dispose()
