"""compute-sanitizer's findings, from what it really said of the planted faults in tests/gpu/kernels/sanitize."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelgate.bench.build.library import Library, Manifest
from kernelgate.bench.check import sanitize
from kernelgate.bench.check.sanitize import SanitizerFinding
from kernelgate.bench.errors import KernelgateError, NoDeviceError
from tests import faulty

LOGS = Path(__file__).parents[2] / "data" / "sanitize"

PLANTED = {
    "memcheck": ("Invalid __global__ write of size 4 bytes", "write_past_the_end(float *, int)", "out_of_bounds.cu", 7),
    "racecheck": ("Race reported at a write", "read_the_neighbour(float *)", "race.cu", 6),
    "initcheck": (
        "Uninitialized __global__ memory read of size 4 bytes",
        "sum_unwritten(const float *, float *)",
        "uninitialised.cu",
        4,
    ),
    "synccheck": (
        "Barrier error detected. Divergent thread(s) in warp",
        "meet_alone(float *)",
        "divergent_barrier.cu",
        8,
    ),
}


@pytest.mark.parametrize(("tool", "expected"), PLANTED.items(), ids=PLANTED)
def test_each_planted_fault_is_named_with_kernel_and_line(tool: str, expected: tuple[str, str, str, int]) -> None:
    (found,) = sanitize.parse(tool, (LOGS / f"{tool}.log").read_text(encoding="utf-8").splitlines())
    assert (found.what, found.kernel, found.file, found.line) == expected
    assert found.tool == tool


def test_the_same_fault_in_many_threads_is_one_finding() -> None:
    (found,) = sanitize.parse("initcheck", (LOGS / "initcheck.log").read_text(encoding="utf-8").splitlines())
    assert found.times == 100  # as many as compute-sanitizer prints
    assert str(found).endswith("in sum_unwritten(const float *, float *) at uninitialised.cu:4 (100 times)")


def test_a_clean_run_has_no_findings() -> None:
    assert sanitize.parse("memcheck", (LOGS / "memcheck_clean.log").read_text(encoding="utf-8").splitlines()) == ()


def test_without_line_information_the_kernel_is_still_named() -> None:
    lines = ["========= Invalid __global__ read of size 16 bytes", "=========     at k(float *)+0x40"]
    assert sanitize.parse("memcheck", lines) == (
        SanitizerFinding("memcheck", "Invalid __global__ read of size 16 bytes", "k(float *)", None, None),
    )


def fake(folder: Path, body: str) -> Path:
    path = folder / "compute-sanitizer"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_findings_of_a_program(tmp_path: Path) -> None:
    script = fake(tmp_path, f"cat {LOGS / 'memcheck.log'}; exit 7")
    (found,) = sanitize.program(script, "memcheck", ["true"])
    assert found.line == 7


def test_a_tool_that_cannot_look_says_why(tmp_path: Path) -> None:
    script = fake(tmp_path, "echo '========= Error: Device not supported.'; echo '=========  '; exit 1")
    with pytest.raises(KernelgateError, match="memcheck could not run: it exited with 1; last line: Error: Device"):
        sanitize.program(script, "memcheck", ["true"])


def test_a_tool_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitize, "TIMEOUT_S", 0.3)
    with pytest.raises(KernelgateError, match="racecheck was stopped after 0 s"):
        sanitize.program(fake(tmp_path, "sleep 60"), "racecheck", ["true"])


def test_a_missing_sanitizer_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitize.cuda_tools, "candidates", lambda *_: iter(()))
    with pytest.raises(
        NoDeviceError, match=r"compute-sanitizer, .* is neither on PATH .*; install it: apt-get install"
    ):
        sanitize.library(Library(Path("x"), Manifest.model_construct(), cached=True), [])


def test_a_card_says_which_cases_are_watched() -> None:
    named = sanitize.default_cases(faulty.card())
    assert [one.case.id for one in named] == ["s65_b1_h2_d64_fp16", "s129_b2_h1_d64_bf16_causal"]


def test_without_any_it_is_the_smallest_that_is_timed_on_a_gpu() -> None:
    card = faulty.card().model_copy(update={"sanitize": ()})
    (smallest,) = sanitize.default_cases(card)
    assert smallest.case.bytes == min(case.bytes or 0 for case in card.suites["pr"])
    assert sanitize.default_cases(card.model_copy(update={"suites": {"pr": (), "cpu": card.suites["cpu"]}})) == ()


def test_every_tool_watches_every_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finds = f"if [ $2 = racecheck ]; then cat {LOGS / 'racecheck.log'}; fi"
    asked = 'for word; do last="$word"; done; read -r asked < "$last"'
    script = fake(tmp_path, f'{asked}; echo "$2 $asked" >> {tmp_path / "said"}; {finds}')
    monkeypatch.setattr(sanitize.cuda_tools, "find", lambda _: script)
    built = faulty.build(tmp_path / "library", "watched")
    found = sanitize.library(built, sanitize.default_cases(faulty.card()), ("memcheck", "racecheck"))
    assert [(one.tool, one.times) for one in found] == [("racecheck", 2)]
    said = (tmp_path / "said").read_text().splitlines()
    assert [line.split()[0] for line in said] == ["memcheck"] * 2 + ["racecheck"] * 2
    assert [json.loads(line[line.index("{") :])["axes"]["S"] for line in said] == [65, 129] * 2
