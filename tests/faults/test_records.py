"""Records that are broken or contradict themselves: each is refused in one sentence that names the place. Nothing is
judged against a baseline that is none."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from kernelgate.bench import record
from kernelgate.bench.core import files
from tests.attacks.honest import Change, changed, measured
from tests.called import EndsWith


def timing(**facts: Any) -> Change:
    return lambda content: content["processes"][0]["timings"][0].update(facts)


def samples(value: Any) -> Change:
    """One sample of the head, written so."""

    def edit(content: dict[str, Any]) -> None:
        content["processes"][0]["timings"][0]["samples_us"]["head"][3] = value

    return edit


def check(**facts: Any) -> Change:
    return lambda content: content["checks"][0].update(facts)


def result(**facts: Any) -> Change:
    return lambda content: content["checks"][0]["results"][0].update(facts)


def first(key: str, **facts: Any) -> Change:
    return lambda content: content[key][0].update(facts)


BROKEN: dict[str, tuple[str, Change]] = {
    "a sample in quotes": ("samples_us.head.3", samples("62.1")),
    "a side more than there is": ("samples_us", timing(samples_us={"base": [1.0], "tail": [1.0]})),
    "a count with a fraction": ("checks.0.failed", check(failed=0.5)),
    "skipped, and a result failed": (
        "it says skipped, and 1 of its results failed",
        lambda content: (check(status="skipped")(content), result(passed=False)(content)),
    ),
    "a case twice": ("case ids must be unique", lambda content: content["cases"].append(content["cases"][0])),
    "a time of no case": ("not among the cases", timing(case="another")),
    "an unknown schema": ("kernelgate.run/2", lambda content: content.update(schema="kernelgate.run/3")),
    "cases that are a text": ("cases", lambda content: content.update(cases="m512")),
}


def refused(path: Path, ends_with: EndsWith) -> str:
    """What is said of a record that nobody can judge, however wide the terminal is."""
    out, err = ends_with(3, "compare", path)
    assert "Traceback" not in out + err
    return " ".join(out.split())


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_record_is_refused_in_one_sentence(fault: str, tmp_path: Path, ends_with: EndsWith) -> None:
    named, edit = BROKEN[fault]
    path = tmp_path / "run.json"
    path.write_bytes(changed(measured(), edit))
    said = refused(path, ends_with)
    assert named in said
    assert said.startswith("❔ Cannot be judged: ")


TORN: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "empty": ("EOF", lambda _: b""),
    "cut short": ("EOF", lambda data: data[: len(data) // 2]),
    "a list": ("object", lambda _: b"[]"),
    "not UTF-8": ("run/2 record", lambda data: b"\xff\xfd" + data),
    "gzip": ("cannot be read: it is packed with gzip: unpack it with `gzip -d`", gzip.compress),
    "zstd": ("cannot be read: it is packed with zstd: unpack it with `zstd -d`", zstandard.compress),
    "xz": ("it is packed with xz: unpack it with `xz -d`", lzma.compress),
    "UTF-32": ("it is UTF-32: make it UTF-8 with `iconv", lambda data: data.decode().encode("utf-32")),
    "a pointer": (
        "fetch what it stands for with `git lfs pull`",
        lambda _: b"version https://git-lfs.github.com/spec/v1",
    ),
    "UTF-16": ("it is UTF-16: make it UTF-8 with `iconv", lambda data: data.decode().encode("utf-16")),
    "5,000 brackets": ("recursion", lambda _: b"[" * 5000),
    "NaN": ("run/2 record", lambda data: data.replace(b"0.2", b"NaN")),
    "two records in one": ("trailing", lambda data: data + data),
}


@pytest.mark.parametrize("fault", TORN)
def test_a_torn_record_is_refused_in_one_sentence(fault: str, tmp_path: Path, ends_with: EndsWith) -> None:
    named, tear = TORN[fault]
    path = tmp_path / "run.json"
    path.write_bytes(tear(json.dumps(json.loads(record.to_json(measured()))).encode()))
    assert named in refused(path, ends_with)


def test_a_mark_before_the_first_character_of_a_record_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(b"\xef\xbb\xbf" + record.to_json(measured()).encode())
    assert record.read(path) == measured()


@pytest.mark.parametrize("place", ["/dev/zero", "/dev/ptmx", "pipe"])
@pytest.mark.parametrize(
    "words",
    [
        ["compare", "{}"],
        ["report", "{}"],
        ["analyze", "{}"],
        ["policy", "--policy", "{}"],
        ["history", "add", "{}"],
        ["template", "{}"],
        ["patterns", "--doctor", "{}"],
    ],
    ids=lambda words: words[0],
)
def test_a_file_without_an_end_or_a_writer_is_refused(
    place: str, words: list[str], tmp_path: Path, ends_with: EndsWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once: it would be read for ever."""
    monkeypatch.setenv("KERNELGATE_CACHE", str(tmp_path / "cache"))
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / place
    said = " ".join("".join(ends_with(3, *(word.format(path) for word in words))).split())
    assert place in said
    assert re.search("it is a device|it is a named pipe|is not an Nsight Compute report", said)


def test_what_the_shell_hands_over_in_a_pipe_is_read() -> None:
    """Such as `kernelgate compare <(zstd -dc run.json.zst)`, which comes in pieces."""
    read, write = os.pipe()
    content = record.to_json(measured()).encode()
    writer = threading.Thread(target=lambda: (time.sleep(0.2), os.write(write, content), os.close(write)))
    writer.start()
    assert files.content(Path(f"/dev/fd/{read}")) == content
    writer.join()
    os.close(read)


@pytest.mark.parametrize("option", ["--output", "--html"])
def test_a_report_does_not_replace_the_record_that_it_is_of(option: str, tmp_path: Path, ends_with: EndsWith) -> None:
    run, link = tmp_path / "run.json", tmp_path / "link"
    record.write(measured(), run)
    link.symlink_to(run)
    before = run.read_bytes()
    assert f"{link} is a record, which the result would replace" in ends_with(64, "report", run, option, link).err
    assert run.read_bytes() == before
    ends_with(0, "report", run, option, tmp_path / "another")


ROOT = Path(__file__).parents[2]
STORED = ROOT / "tests" / "data" / "baseline_h200.json"
RECORD = ROOT / "tests" / "data" / "comparisons" / "identical.json"

NO_BASELINE = {
    "a pointer of git's LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n",
    "of another schema": STORED.read_bytes().replace(b"kernelgate.run/2", b"kernelgate.run/9"),
}


@pytest.mark.parametrize("kind", NO_BASELINE)
def test_a_broken_baseline_is_named(tmp_path: Path, ends_with: EndsWith, kind: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_bytes(NO_BASELINE[kind])
    for verb in ("compare", "report"):
        printed = ends_with(3, verb, RECORD, "--baseline", path)
        assert printed.out == ""
        why = (
            ": cannot be read: it is a pointer of git LFS: " if "LFS" in kind else " is not a kernelgate.run/2 record: "
        )
        assert printed.err.startswith(f"kernelgate: {path}{why}")
        assert printed.err.count("\n") == 1


@pytest.mark.parametrize("kind", ["missing", "a folder"])
def test_a_baseline_that_cannot_be_read_is_named(tmp_path: Path, ends_with: EndsWith, kind: str) -> None:
    path = tmp_path if kind == "a folder" else tmp_path / "missing.json"
    assert ends_with(3, "compare", RECORD, "--baseline", path).err.startswith(f"kernelgate: {path}: cannot be read: ")


def test_a_baseline_of_another_gpu_judges_nothing(tmp_path: Path, ends_with: EndsWith) -> None:
    path = tmp_path / "baseline.json"
    path.write_bytes(STORED.read_bytes().replace(b"H200", b"L4"))
    assert "L4" in ends_with(3, "compare", RECORD, "--baseline", path).out


def test_a_baseline_without_these_cases_judges_nothing(tmp_path: Path, ends_with: EndsWith) -> None:
    path = tmp_path / "baseline.json"
    path.write_text("{}", encoding="utf-8")
    assert "Cannot be judged" in ends_with(3, "compare", RECORD, "--baseline", path).out


def test_a_folder_of_sessions_that_is_not_there_is_no_empty_one(tmp_path: Path, ends_with: EndsWith) -> None:
    assert "'--sessions'" in ends_with(64, "outcomes", "--sessions", tmp_path / "none").err
    ends_with(0, "outcomes", "--sessions", tmp_path)
