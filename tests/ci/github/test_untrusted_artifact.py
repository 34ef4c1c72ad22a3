"""Artifacts that an enemy made: each is refused, by name and with the reason."""

from __future__ import annotations

import io
import json
import re
import stat
import zipfile
from typing import Any

import pytest

from kernelgate.bench import record
from kernelgate.ci.github import untrusted_artifact
from kernelgate.ci.github.untrusted_artifact import RefusedError, checked_failure, checked_record, members
from tests.ci.report_examples import BASE_SHA, EXAMPLES, HEAD_SHA
from tests.fakes.github_server import Json, zipped

KNOWN = record.Run(
    repository="octo-org/kernels", pull_request=7, head_sha=HEAD_SHA, base_sha=BASE_SHA, run_id=77, run_attempt=1
)
HONEST = record.to_json(EXAMPLES["slower"]().record.model_copy(update={"run": KNOWN})).encode()
WHOLE = json.loads(HONEST)
NOTE: dict[str, Any] = {"schema": "kernelgate.failure/1", "fault": "build", "message": "csrc/k.cu:3: error: no"}


def entry(name: str, data: bytes = b"{}", mode: int = stat.S_IFREG | 0o644) -> bytes:
    return zipped({name: data}, mode)


def with_value(text: str) -> bytes:
    """The honest record with one sample written differently."""
    content = json.loads(HONEST)
    content["processes"][0]["timings"][0]["samples_us"]["head"][0] = 12345.678
    return json.dumps(content).encode().replace(b"12345.678", text.encode())


NAMES = [
    "../run.json",
    "/etc/passwd",
    "C:\\run.json",
    "x/run.json",
    "RUN.JSON",
    "run\u200b.json",
    "x\n::error::run.json",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_other_name_is_refused(name: str) -> None:
    with pytest.raises(RefusedError, match=r"it holds '.*'; only run\.json and failure\.json may be in it") as caught:
        members(entry(name))
    assert "\n" not in str(caught.value)


def twice() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("run.json", "{}")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("run.json", "{}")
    return buffer.getvalue()


def damaged(data: bytes, at: dict[int, int]) -> bytes:
    return bytes(at.get(place, value) for place, value in enumerate(data))


PACKED, PLAIN = zipped({"run.json": HONEST}), entry("run.json")
FLAGS = [PLAIN.index(signature) + offset for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8))]
ARCHIVES = {
    "something behind a NUL": (entry("run.jsonX../evil").replace(b"nX../evil", b"n\0../evil"), r"only run\.json"),
    "a link": (entry("run.json", b"/etc/passwd", stat.S_IFLNK | 0o777), r"run\.json is a link"),
    "a device": (entry("run.json", mode=stat.S_IFCHR | 0o777), r"run\.json is a special"),
    "one name twice": (twice(), "duplicate names"),
    "encrypted": (
        damaged(PLAIN, {place: PLAIN[place] | 1 for place in FLAGS}),
        "encrypted or packed in an unknown way",
    ),
    "damaged": (damaged(PACKED, dict.fromkeys(range(200, 260), 0)), "not a valid zip file"),
    "too large": (b"\0" * (untrusted_artifact.MAX_ARCHIVE + 1), "bytes, more than"),
}


@pytest.mark.parametrize("what", ARCHIVES)
def test_an_archive_of_another_form_is_refused(what: str) -> None:
    data, said = ARCHIVES[what]
    with pytest.raises(RefusedError, match=said):
        members(data)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NaN", "NaN is not a JSON number"),
        ("1e999", "1e999 is not finite"),
        ("-3.5", "greater than or equal to"),
        ("9" * 300, "has more than 20 digits"),
    ],
)
def test_numbers_that_are_none_are_refused(text: str, said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        checked_record(with_value(text), KNOWN)


@pytest.mark.parametrize(
    ("subject", "what"),
    [
        ({"head_sha": "e" * 40}, "another commit: it says eeeeeee, GitHub says a1b2"),
        ({"head_sha": None}, "does not say which commit"),
        ({"base_sha": "e" * 40}, "another base commit"),
        ({"pull_request": 8}, "another pull request: it says 8, GitHub says 7"),
        ({"repository": "mallory/kernels"}, "another repository"),
        ({"run_id": 78}, "another run"),
        ({"run_attempt": 2}, "another attempt"),
    ],
)
def test_a_record_of_something_else_is_refused(subject: dict[str, Any], what: str) -> None:
    with pytest.raises(RefusedError, match=what):
        checked_record(json.dumps(WHOLE | {"run": WHOLE["run"] | subject}).encode(), KNOWN)
    with pytest.raises(RefusedError, match="the record names pull request 7, GitHub knows none"):
        checked_record(HONEST, KNOWN.model_copy(update={"pull_request": None}))


def test_many_keys_and_many_cases_are_refused_at_once() -> None:
    """Each of the two would take hours where every one is compared with every other."""
    keys = ",".join(f'"{number}":0' for number in range(40_000))
    with pytest.raises(RefusedError, match="the key '39999' stands twice"):
        checked_record(f'{{{keys},"39999":0}}'.encode(), KNOWN)
    cases = [{"id": str(number)} for number in range(20_000)]
    with pytest.raises(RefusedError, match="it has 20000 cases"):
        checked_record(json.dumps({"schema": record.SCHEMA, "cases": cases}).encode(), KNOWN)


CHECK = WHOLE["checks"][0]
AXES = WHOLE["cases"][0] | {"axes": {f"a{number}": True for number in range(65)}}
CONTENTS: dict[str, tuple[Json, str]] = {
    "an unknown key": ({"x\n::stop-commands::y": 1}, "Extra inputs are not permitted"),
    "a build of another commit": (
        {"builds": [{"side": "head", "sha": "e" * 40}]},
        "another commit of the head's build",
    ),
    "cards": ({"cards": [{"name": str(number)} for number in range(257)]}, "it has 257 cards, more than 256"),
    "axes": ({"cases": [AXES, *WHOLE["cases"][1:]]}, "it has 65 axes of 's512_b32_h8_d64_fp16', more than 64"),
    "profiles": ({"profile": [{"case": "x", "side": "head"}] * 51}, "it has 51 profiles, more than 50"),
    "notes": ({"notes": [{"text": "x"}] * 51}, "it has 51 notes, more than 50"),
    "processes": (
        {"processes": [WHOLE["processes"][0] | {"id": str(number)} for number in range(40)]},
        "processes of 's512_b32_h8_d64_fp16', more than 32",
    ),
    "fuzz results": (
        {"checks": [CHECK | {"results": [CHECK["results"][0] | {"seed": seed} for seed in range(51)]}]},
        "it has 51 fuzz results",
    ),
}
"""What is put in the place of the honest record's, and what is said of it."""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a list may hold is soon made."""
    monkeypatch.setattr(untrusted_artifact, "MAX_ENTRIES", 50)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("what", CONTENTS)
def test_a_record_with_what_it_may_not_hold_is_refused(what: str) -> None:
    change, said = CONTENTS[what]
    with pytest.raises(RefusedError, match=said) as caught:
        checked_record(json.dumps(WHOLE | change).encode(), KNOWN)
    assert "\n" not in str(caught.value), "in a line of its own"


def accuracy_of(case: str, draws: int, distribution: str = "normal") -> dict[str, Any]:
    errors = {name: [0.25] * draws for name in ("mean", "maximum", "bias", "outward")}
    return {"case": case, "distribution": distribution, "base": errors, "head": errors, "elements": 1}


@pytest.mark.parametrize(
    ("accuracies", "says"),
    [
        ([accuracy_of("s512_b32_h8_d64_fp16", 65)], "at most 64 items"),
        ([accuracy_of("s512_b32_h8_d64_fp16", 2)] * 2, "accuracies must be unique"),
        ([accuracy_of("elsewhere", 2)], "'elsewhere' was measured, which is not among the cases"),
        ([accuracy_of("s512_b32_h8_d64_fp16", 2) | {"base": {"mean": [0.2]}}], "base.maximum: Field required"),
        ([accuracy_of("s512_b32_h8_d64_fp16", 2) | {"identical": 3}], "3 of 2 draws cannot be identical"),
        ([accuracy_of("s512_b32_h8_d64_fp16", 1, f"d{n}") for n in range(51)], "it has 51 accuracies"),
    ],
    ids=["draws", "twice", "no such case", "no maximum", "more than all", "without an end"],
)
@pytest.mark.usefixtures("few")
def test_accuracies_that_do_not_fit_are_refused(accuracies: list[dict[str, Any]], says: str) -> None:
    content = json.loads(HONEST)
    card = content["cases"][0].get("card", "")
    content["checks"].append({"kind": "accuracy", "card": card, "status": "passed", "accuracies": accuracies})
    with pytest.raises(RefusedError, match=re.escape(says)):
        checked_record(json.dumps(content).encode(), KNOWN)


def test_more_samples_than_can_be_judged_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untrusted_artifact, "MAX_SAMPLES", 1)
    with pytest.raises(RefusedError, match="more than 1"):
        checked_record(HONEST, KNOWN)


@pytest.mark.parametrize(
    "change", [{"fault": "mallory"}, {"message": "x" * 5000}, {"log": ["x"] * 201}, {"pull_request": 3}]
)
def test_a_failure_note_that_does_not_fit_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(RefusedError, match="does not fit its schema"):
        checked_failure(json.dumps(NOTE | change).encode())
