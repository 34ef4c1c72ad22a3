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
from tests.fakes.github_server import zipped

KNOWN = record.Run(
    repository="octo-org/kernels", pull_request=7, head_sha=HEAD_SHA, base_sha=BASE_SHA, run_id=77, run_attempt=1
)
HONEST = record.to_json(EXAMPLES["slower"]().record.model_copy(update={"run": KNOWN})).encode()
NOTE: dict[str, Any] = {"schema": "kernelgate.failure/1", "fault": "build", "message": "csrc/k.cu:3: error: no"}


def entry(name: str, data: bytes = b"{}", mode: int = stat.S_IFREG | 0o644, **facts: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        for key, value in facts.items():
            setattr(info, key, value)
        archive.writestr(info, data)
    return buffer.getvalue()


def changed(**subject: Any) -> bytes:
    content = json.loads(HONEST)
    content["run"] |= subject
    return json.dumps(content).encode()


def with_value(text: str) -> bytes:
    """The honest record with one sample written differently."""
    content = json.loads(HONEST)
    content["processes"][0]["timings"][0]["samples_us"]["head"][0] = 12345.678
    return json.dumps(content).encode().replace(b"12345.678", text.encode())


# The archive ---------------------------------------------------------------------------------------------------------


NAMES = ["../run.json", "../../.bashrc", "/etc/passwd", "/srv/run.json", "C:\\run.json", "..\\run.json", "x/run.json"]
NAMES += ["./run.json", "run.json/", "RUN.JSON", "run.json ", "run.jsonx", ".git/hooks/pre-commit", "run\u200b.json"]
NAMES += ["::add-mask::run.json", "x\n::error::run.json"]


@pytest.mark.parametrize("name", NAMES)
def test_any_other_name_is_refused(name: str) -> None:
    with pytest.raises(RefusedError, match=r"it holds '.*'; only run\.json and failure\.json may be in it") as caught:
        members(entry(name))
    assert "\n" not in str(caught.value)


def test_a_name_with_something_behind_a_nul_is_refused() -> None:
    data = entry("run.jsonX../evil").replace(b"run.jsonX../evil", b"run.json\0../evil")
    with pytest.raises(RefusedError, match=r"only run\.json"):
        members(data)


@pytest.mark.parametrize(
    ("kind", "said"),
    [(stat.S_IFLNK, "link"), (stat.S_IFCHR, "special"), (stat.S_IFDIR, "special")],
)
def test_links_and_special_files_are_refused(kind: int, said: str) -> None:
    with pytest.raises(RefusedError, match=rf"run\.json is a.*{said}"):
        members(entry("run.json", b"/etc/passwd", kind | 0o777))


def test_one_name_twice_is_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("run.json", "{}")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("run.json", "{}")
    with pytest.raises(RefusedError, match="duplicate names"):
        members(buffer.getvalue())


def test_an_encrypted_file_is_refused() -> None:
    data = bytearray(entry("run.json"))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    with pytest.raises(RefusedError, match="encrypted or packed in an unknown way"):
        members(bytes(data))


def test_damaged_content_is_refused() -> None:
    data = bytearray(zipped({"run.json": HONEST}))
    data[200:260] = bytes(60)
    with pytest.raises(RefusedError, match="not a valid zip file"):
        members(bytes(data))


def test_a_large_archive_is_refused_unread() -> None:
    with pytest.raises(RefusedError, match="bytes, more than"):
        members(b"\0" * (untrusted_artifact.MAX_ARCHIVE + 1))


# The record ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NaN", "NaN is not a JSON number"),
        ("1e999", "1e999 is not finite"),
        ("0", "greater than or equal to"),
        ("-3.5", "greater than or equal to"),
        ('"NaN"', "refused"),
        ("9" * 300, "has more than 20 digits"),
    ],
)
def test_numbers_that_are_none_are_refused(text: str, said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        checked_record(with_value(text), KNOWN)


def test_unknown_keys_are_refused_in_a_line_of_their_own() -> None:
    content = json.loads(HONEST) | {"x\n::stop-commands::y": 1}
    with pytest.raises(RefusedError) as caught:
        checked_record(json.dumps(content).encode(), KNOWN)
    assert "\n" not in str(caught.value)


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
        checked_record(changed(**subject), KNOWN)


def test_builds_of_other_commits_are_refused() -> None:
    content = json.loads(HONEST)
    content["builds"] = [{"side": "head", "sha": "e" * 40}]
    with pytest.raises(RefusedError, match="another commit of the head's build"):
        checked_record(json.dumps(content).encode(), KNOWN)


def test_a_pull_request_that_github_does_not_know_is_refused() -> None:
    with pytest.raises(RefusedError, match="the record names pull request 7, GitHub knows none"):
        checked_record(HONEST, KNOWN.model_copy(update={"pull_request": None}))


def test_many_keys_and_many_cases_are_refused_at_once() -> None:
    """Each of the two would take hours where every one is compared with every other."""
    keys = ",".join(f'"{number}":0' for number in range(200_000))
    with pytest.raises(RefusedError, match="the key '199999' stands twice"):
        checked_record(f'{{{keys},"199999":0}}'.encode(), KNOWN)
    cases = [{"id": str(number)} for number in range(100_000)]
    with pytest.raises(RefusedError, match="it has 100000 cases"):
        checked_record(json.dumps({"schema": record.SCHEMA, "cases": cases}).encode(), KNOWN)


def test_many_cards_and_many_axes_are_refused() -> None:
    """Each name of one may be looked for in every claim."""
    content = json.loads(HONEST)
    with pytest.raises(RefusedError, match="it has 257 cards, more than 256"):
        checked_record(
            json.dumps(content | {"cards": [{"name": str(number)} for number in range(257)]}).encode(), KNOWN
        )
    content["cases"][0]["axes"] = {f"a{number}": True for number in range(65)}
    with pytest.raises(RefusedError, match="it has 65 axes of 's512_b32_h8_d64_fp16', more than 64"):
        checked_record(json.dumps(content).encode(), KNOWN)


@pytest.mark.parametrize(
    ("key", "entry"),
    [("profile", {"case": "x", "side": "head"}), ("builds", {"side": "head"}), ("notes", {"text": "x"})],
)
def test_lists_without_an_end_are_refused(key: str, entry: Any) -> None:
    content = json.loads(HONEST) | {key: [entry] * 4097}
    with pytest.raises(RefusedError, match=r"it has 4097 .*, more than 4096"):
        checked_record(json.dumps(content).encode(), KNOWN)


def test_processes_and_fuzz_results_without_an_end_are_refused() -> None:
    content = json.loads(HONEST)
    first = content["processes"][0]
    content["processes"] = [first | {"id": str(number)} for number in range(40)]
    with pytest.raises(RefusedError, match="processes of 's512_b32_h8_d64_fp16', more than 32"):
        checked_record(json.dumps(content).encode(), KNOWN)
    content = json.loads(HONEST)
    content["checks"][0]["results"] = content["checks"][0]["results"][:1] * 4097
    with pytest.raises(RefusedError, match="it has 4097 fuzz results"):
        checked_record(json.dumps(content).encode(), KNOWN)


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
        ([accuracy_of("s512_b32_h8_d64_fp16", 1, f"d{n}") for n in range(4097)], "it has 4097 accuracies"),
    ],
    ids=["draws", "twice", "no such case", "no maximum", "more than all", "without an end"],
)
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


# The failure note ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"fault": "mallory"},
        {"message": "x" * 5000},
        {"log": ["x"] * 201},
        {"pull_request": 3},
    ],
)
def test_a_failure_note_that_does_not_fit_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(RefusedError, match="does not fit its schema"):
        checked_failure(json.dumps(NOTE | change).encode())
