"""`kernelgate analyze`: real reports of kernels with known faults, reports with holes, files that are no reports."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgate.bench import record
from kernelgate.bench.core.documentation import page
from kernelgate.bench.explain import ncu_reader, nsight
from kernelgate.bench.explain.metrics import METRICS
from kernelgate.bench.explain.ncu_reader import ProfiledKernel
from kernelgate.bench.record import Profile, RunRecord
from kernelgate.ci.commands import measure
from kernelgate.ci.commands.options import shown
from kernelgate.ci.explain import analyze
from kernelgate.ci.explain.bottleneck import Bottleneck
from tests.called import EndsWith

DATA = Path(__file__).parents[2] / "data" / "nsight"
KEPT = Path(__file__).parents[2] / "fuzzing" / "corpus"
pytestmark = pytest.mark.usefixtures("reports_at_once")

FAULTS = {
    **{f"{fault}.ncu-rep": fault for fault in Bottleneck if fault != "divergence"},
    "tail_wave.ncu-rep": "small_grid",
    # NVIDIA's sections without the counters that show the fault at once.
    **{f"{fault}_sections.ncu-rep": fault for fault in ("bank_conflicts", "dram", "spills")},
    "attention_before.ncu-repz": "occupancy",
    "attention_occupancy.ncu-repz": "occupancy",
    "attention_banks.ncu-repz": "bank_conflicts",
    "attention_spills.ncu-repz": "spills",
}


@cache
def launches(report: str) -> tuple[ProfiledKernel, ...]:
    return ncu_reader.launches(str(DATA / report))


def analyzed(report: str) -> tuple[analyze.Analysis, ...]:
    return tuple(map(analyze.analyze_kernel, launches(report)))


@pytest.mark.parametrize(("report", "fault"), FAULTS.items(), ids=FAULTS)
def test_names_the_fault(report: str, fault: str) -> None:
    (analysis,) = analyzed(report)
    assert analysis.bottleneck.bottleneck == fault
    assert analysis.bottleneck.strength >= 0.5 or report.startswith("attention")
    assert analysis.bottleneck.evidence


def test_against_shows_what_changed(ends_with: EndsWith) -> None:
    words = ("analyze", DATA / "attention_spills.ncu-repz", "--against", DATA / "attention_before.ncu-repz")
    out = ends_with(0, *words).out
    assert "duration: 62.7 µs → 150 µs  +138.7%" in out
    assert "registers per thread: 242 → 128  -47.1%" in out
    assert "before: latency bound by low occupancy" in out
    content = json.loads(ends_with(0, *words, "--json").out)
    made = content["budgets"][0]["budget"]
    assert made["contributions"][0]["metric"] == "local_instructions"
    assert f"  +138.7%: {' '.join(made['words'])}\n" in out
    changed = {"before": 242, "after": 128, "change_pct": pytest.approx(-47.1, abs=0.1)}
    assert content["changes"][0]["registers"] == changed


def of_collection(name: str, **planted: float) -> analyze.Analysis:
    """One kernel of the collection, with some figures as if they had been measured."""
    (found,) = [one for one in launches("collection.ncu-repz") if one.name.startswith(f"{name}(")]
    return analyze.analyze_kernel(replace(found, figures={**found.figures, **planted}))


@pytest.mark.slow
def test_warps_that_diverge_hold_a_kernel_back_that_computes() -> None:
    found = of_collection("fp64", threads_per_instruction=16.0, threads_working=12.0)
    assert found.bottleneck.bottleneck is Bottleneck.DIVERGENCE
    assert "12.0 of a warp's 32 threads work in an instruction" in found.bottleneck.evidence
    assert "16.0 are active, and predicates switch off 4.0 of them" in found.bottleneck.evidence
    assert found.recommendations[0].link == page("CUDA_COOKBOOK.md#warp-divergence")


HALF_A_WAVE = {
    "duration_us": 39.2, "tensor_pct": 33.0, "dram_pct": 10.2, "l2_pct": 39.0, "lsu_data_pct": 39.3, "issue_pct": 29.3,
    "occupancy_pct": 12.4, "theoretical_occupancy_pct": 25.0, "registers": 124.0, "grid": 128.0, "waves": 0.485,
    "shared_bytes": 49152.0, "block_threads": 256.0, "elapsed_cycles": 72896.0, "sm_active_cycles": 64347.0,
}  # fmt: skip
"""Of an int8 product on an H200, whose tiles, halved, made it 9.1% faster (.ci/sessions/int8-few-rows)."""


@pytest.mark.parametrize(("grid", "waves", "named"), [(128.0, 0.485, "small_grid"), (1024.0, 3.88, "occupancy")])
def test_low_occupancy_of_half_a_wave_is_for_want_of_blocks(grid: float, waves: float, named: str) -> None:
    figures = {**HALF_A_WAVE, "grid": grid, "waves": waves}
    found = analyze.analyze_kernel(ProfiledKernel("gemm", "NVIDIA H200", (9, 0), 132, figures, ()))
    assert found.bottleneck.bottleneck == named


def launched(name: str, duration_us: float) -> analyze.Analysis:
    kernel = ProfiledKernel(name, "NVIDIA H200", (9, 0), 132, {"duration_us": duration_us}, ())
    return analyze.analyze_kernel(kernel)


def test_a_renamed_kernel_is_set_beside_the_one_that_does_its_work() -> None:
    before = [launched("helper", 2.0), launched("gemm<64>", 90.0), launched("old_norm", 30.0)]
    after = [launched("helper", 2.0), launched("new_norm", 40.0), launched("gemm<128>", 80.0)]
    assert [(here.kernel.name, there.kernel.name) for here, there in analyze.pairs(after, before)] == [
        ("helper", "helper"),
        ("new_norm", "old_norm"),
        ("gemm<128>", "gemm<64>"),
    ]
    assert "  against old_norm: " in analyze.to_text(after, before)


def test_roofline_of_a_copy_and_of_matrix_products() -> None:
    (copy,) = analyzed("dram.ncu-rep")
    assert copy.roofline.roof == "dram"
    assert copy.roofline.percent_of_roof == pytest.approx(90, abs=2)
    assert copy.roofline.arithmetic_intensity == pytest.approx(1 / 12, rel=0.1)  # one addition, three words
    (attention,) = analyzed("attention_before.ncu-repz")
    flops = 4 * 256 * 512 * 512 * 64
    assert attention.roofline.roof == "tensor"
    assert attention.roofline.achieved_flops == pytest.approx(flops / 62.66e-6, rel=0.1)  # and the softmax's


FIGURES = list(METRICS)


@given(
    st.dictionaries(st.sampled_from(FIGURES), st.floats(0, 1e12) | st.just(0.0)),
    st.sampled_from([None, (8, 0), (8, 9), (9, 0), (12, 1)]),
    st.sampled_from([None, 1, 58, 132]),
)
def test_any_set_of_counters_gives_a_bottleneck(
    figures: dict[str, float], capability: tuple[int, int] | None, sms: int | None
) -> None:
    analysis = analyze.analyze_kernel(ProfiledKernel("k", None, capability, sms, figures, ()))
    assert 0 <= analysis.bottleneck.strength <= 1
    assert len(analysis.recommendations) <= 3
    content = json.loads(shown(analyze.to_answer([analysis])))
    assert content["kernels"][0]["bottleneck"] in {one.value for one in Bottleneck}
    assert analyze.to_text([analysis])


def test_a_report_without_any_counter_is_a_guess_and_its_kernels_name_is_text() -> None:
    """No control character of it reaches a terminal."""
    analysis = analyze.analyze_kernel(ProfiledKernel("k\x1b[31m\n## title", None, None, None, {}, ()))
    assert analysis.bottleneck.strength < 0.1
    assert analysis.roofline.percent_of_roof is None
    assert analyze.to_text([analysis]).startswith("k [31m ## title\n")


def test_bad_files_get_one_sentence(tmp_path: Path, ends_with: EndsWith) -> None:
    (tmp_path / "short").write_bytes((DATA / "dram.ncu-rep").read_bytes()[:20_000])
    (tmp_path / "text").write_text("no report")
    for name, words in {
        "short": "contains no kernel",
        "text": "is not an Nsight Compute report",
        "missing": "cannot be read",
    }.items():
        said = ends_with(3, "analyze", tmp_path / name)
        assert words in said.err
        assert (said.out, said.err.count("\n")) == ("", 1)


@pytest.mark.slow
def test_a_report_that_ends_nvidias_reader_is_one_sentence() -> None:
    """Its C++ ends the process over a length below zero."""
    words = [sys.executable, "-m", "kernelgate.ci.commands.cli", "analyze", KEPT / "profile/negative_length.ncu-rep"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("\n") == 1
    assert "cannot be read as a report: the process was killed by SIGABRT" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("other", ["base", "reference"])
def test_one_call_of_profile_answers_with_metrics_bottleneck_and_what_to_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith, other: str
) -> None:
    """As the founding documents ask for: no second command. The reference is compared with, and is no side of a
    record."""
    before, after = (shutil.copy(DATA / f"{name}.ncu-rep", tmp_path) for name in ("dram", "coalescing"))
    base = Profile(card="copy", case="n1", side=other, report=Path(before).name)
    made = (base, Profile(card="copy", case="n1", side="head", report=Path(after).name))
    done = nsight.ProfilingResult(made, ("the base of n2: ncu is missing",))
    asked = measure.AskedSides
    monkeypatch.setattr(asked, "built", lambda _: {})
    monkeypatch.setattr(asked, "judging", lambda _: None)
    monkeypatch.setattr(measure.commit, "judged", lambda *_: ())
    asked_for: list[nsight.Options] = []
    monkeypatch.setattr(measure.nsight, "profile", lambda *words: asked_for.append(words[2]) or done)
    monkeypatch.setattr(measure, "only_gpu", lambda: "cuda:0")
    path = tmp_path / "run.json"
    path.write_text(record.to_json(RunRecord()), encoding="utf-8")
    words = ("--alone", "--reference") if other == "reference" else ()
    told = json.loads(ends_with(3, "profile", *words, "--out", tmp_path, "--record", path, "--json").out)
    assert [one.reference for one in asked_for] == [other == "reference"]
    assert [one.side for one in record.read(path).profile] == (["base"] if other == "base" else []) + ["head"]
    [kernel] = told["analyses"]["copy/n1"]["kernels"]
    assert kernel["bottleneck"] == "coalescing"
    assert kernel["metrics"]["duration_us"] > 0
    assert kernel["recommendations"][0]["action"]
    assert told["analyses"]["copy/n1"]["budgets"], "and what the change is made of"
    assert told["failures"] == ["the base of n2: ncu is missing"]
