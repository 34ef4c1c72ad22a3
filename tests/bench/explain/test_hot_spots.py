"""Samples by line and instruction, of a real report; and of reports that lack them. Beside samples stand the commit's
own lines, and nothing of any other file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from kernelgate.bench.build.compiler_output import HERE
from kernelgate.bench.build.library import PACKAGE, SOURCES, Library, Manifest
from kernelgate.bench.explain import ncu_reader, nsight
from kernelgate.bench.kernel import triton_build
from kernelgate.bench.record import MAX_HOT_TEXT, HotInstruction, HotLine, HotSpots
from tests import hot_examples

REPORTS = Path(__file__).parents[2] / "data" / "nsight"


def spots(kernel: str) -> HotSpots:
    found = hot_examples.launches()[kernel].hot_spots
    assert found is not None
    return found


@pytest.mark.slow
def test_the_hottest_lines_and_instructions_are_those_of_the_report() -> None:
    found = spots("transpose_naive")
    assert found.samples == 31617
    assert [(one.line, one.samples, one.stall) for one in found.lines] == [
        (6, 16998, "drain"),
        (5, 10368, "long_scoreboard"),
        (4, 4172, "short_scoreboard"),
        (3, 79, "no_instructions"),
    ]
    assert sum(one.samples for one in found.lines) == found.samples
    first, second, *_ = found.instructions
    assert (first.sass, first.line, first.samples) == ("BRA `(.L_x_0)", 6, 16993)
    assert (second.sass, second.line, second.stall) == ("STG.E desc[UR4][R4.64], R7", 5, "long_scoreboard")


@pytest.mark.slow
@pytest.mark.parametrize("report", ["dram.ncu-rep", "dram_sections.ncu-rep"])
def test_a_report_without_samples_and_a_kernel_that_was_never_sampled_have_none(report: str) -> None:
    assert ncu_reader.launches(str(REPORTS / report))[0].hot_spots is None
    assert hot_examples.launches()["empty"].hot_spots is None


ELSEWHERE = "what stands elsewhere"


def library(folder: Path, kind: Literal["extension", "package"] = "extension") -> Library:
    held = folder / (SOURCES if kind == "extension" else PACKAGE)
    (held / "csrc").mkdir(parents=True)
    (held / "csrc" / "norm.cuh").write_text(f"first\n  s += x * x;  \n{'y' * 300}\n", encoding="utf-8")
    return Library(folder, Manifest.model_construct(kind=kind), cached=True)


def sampled(file: str, line: int = 2) -> HotSpots:
    return HotSpots(
        samples=10,
        lines=(HotLine(file=file, line=line, samples=9),),
        instructions=(HotInstruction(sass="FFMA", file=file, line=line, samples=5),),
    )


def shown(found: HotSpots) -> tuple[str | None, ...]:
    return found.lines[0].file, found.lines[0].text, found.instructions[0].file


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("extension", f"{HERE}csrc"),
        ("extension", f"{HERE}csrc/a/../../csrc"),
        ("package", f"{triton_build.SOURCES}/csrc"),  # compiled ahead of time
        ("package", "{library}/package/csrc"),  # or where it is called
    ],
)
def test_a_line_of_the_commit_is_quoted(tmp_path: Path, kind: Literal["extension", "package"], place: str) -> None:
    held, file = library(tmp_path, kind), f"{place.format(library=tmp_path)}/norm.cuh"
    assert shown(nsight.quoted(sampled(file), held)) == ("csrc/norm.cuh", "s += x * x;", "csrc/norm.cuh")
    assert nsight.quoted(sampled(file, 3), held).lines[0].text == "y" * MAX_HOT_TEXT
    assert nsight.quoted(sampled(file, 4), held).lines[0].text is None, "behind the end"


@pytest.mark.parametrize("kind", ["extension", "package"])
@pytest.mark.parametrize(
    "place",
    [
        "{outside}",
        "../../secret.txt",
        f"{HERE}../secret.txt",
        f"{triton_build.SOURCES}/../secret.txt",
        f"{HERE}csrc/secret.txt",
    ],
    ids=["absolute", "relative", "beside an extension's sources", "beside a package's sources", "by a link"],
)
def test_a_line_table_that_names_another_file_gets_nothing_of_it(
    tmp_path: Path, kind: Literal["extension", "package"], place: str
) -> None:
    outside = tmp_path / "secret.txt"
    outside.write_text(f"{ELSEWHERE}\n" * 3, encoding="utf-8")
    held = library(tmp_path / "library", kind)
    (held.folder / (SOURCES if kind == "extension" else PACKAGE) / "csrc" / "secret.txt").symlink_to(outside)
    assert shown(nsight.quoted(sampled(place.format(outside=outside)), held)) == ("secret.txt", None, "secret.txt")
