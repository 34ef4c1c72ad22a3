"""What the verbs of the history print with --json: one object of the published schema, with the same exit code."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench import record
from kernelgate.ci.commands import cli
from kernelgate.ci.history import database
from kernelgate.ci.lab import folder
from kernelgate.ci.report import dashboard_write
from tests import miniature
from tests.ci.answered import validated
from tests.ci.history.entries import a_record, put
from tests.ci.history.test_culprits import nightly
from tests.ci.history.test_nights import STEP, a_pair, sha
from tests.ci.lab import session_events

STORE = Path(".kernelgate/history")


@pytest.fixture
def checkout(tmp_path: Path, empty_sqlite: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with an empty history, and a policy that judges quickly."""
    policy = "[gates]\nregression_pct = 3.0\n"
    root = miniature.repository(tmp_path / "checkout", {".ci/kernelgate.toml": policy})
    (root / STORE).mkdir(parents=True)
    shutil.copy(empty_sqlite, root / STORE / "index.sqlite")
    for name in ("HISTORY_STORE", "HISTORY_DATABASE"):
        monkeypatch.delenv(f"KERNELGATE_{name}", raising=False)
    monkeypatch.delenv("GITHUB_OUTPUT", raising=False)
    monkeypatch.chdir(root)
    return root


def answered(capsys: pytest.CaptureFixture[str], words: Sequence[str], code: int = 0) -> Any:
    """The object that the verb printed, alone on standard output."""
    assert cli.run(["history", *words, "--json"]) == code, capsys.readouterr().err
    name = "step index" if words[0] == "next" else f"history {words[0]}"
    return validated(name, capsys.readouterr().out)


def test_what_is_kept_answers_what_its_schema_says(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record.write(a_record(), checkout / "a.json")
    folder.create(checkout, session_events.opened())
    (checkout / "bad.json").write_text("{")
    added = answered(capsys, ["add", "a.json", "bad.json"], code=3)
    assert (added["added"], added["known"], list(added["not_added"])) == (1, 0, ["bad.json"])
    assert answered(capsys, ["rebuild"])["measurements"] == 1
    assert answered(capsys, ["condense"])["with_every_sample"] == 1
    [compared] = answered(capsys, ["show"])["series"]
    assert (len(compared["points"]), len(compared["comparisons"])) == (2, 1)
    export = answered(capsys, ["export"])
    assert (len(export["points"]), [one["name"] for one in export["sessions"]]) == (2, ["one"])
    monkeypatch.setattr(dashboard_write, "chart_library", lambda _: {})
    site = answered(capsys, ["site", "-o", "pages"])
    assert (site["cases"], (checkout / site["index"]).exists()) == (1, True)
    assert answered(capsys, ["next"])["outputs"]["gpu"] == ""


@pytest.mark.usefixtures("checkout")
def test_what_is_suspected_and_told_answers_what_its_schema_says(capsys: pytest.CaptureFixture[str]) -> None:
    index = database.at(STORE / "index.sqlite")
    nightly(index, "one", "two")
    put(index, a_pair(STEP - 1, STEP, 2.0))
    index.engine.dispose()

    states = {one["series"]["case"]: one["state"] for one in answered(capsys, ["changes"])["changes"]}
    assert states == {"one": "confirmed", "two": "suspected"}
    assert [one["cases"] for one in answered(capsys, ["tonight"])["pairs"]] == [["norm/two"]]
    [culprit] = answered(capsys, ["culprits", "-o", "told"])["culprits"]
    assert (culprit["commit"], culprit["cases"][0]["case"]) == (sha(STEP), "one")
    assert validated("history culprits", Path("told/culprits.json").read_text())["culprits"] == [culprit]
