"""`kernelgate profile` with a fake ncu: every way in which a profiler lets one down is one sentence."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from kernelgate.bench.build.library import Library, Manifest, Sides
from kernelgate.bench.explain import metrics, nsight
from kernelgate.bench.explain.nsight import Options
from kernelgate.bench.system import cuda_tools

REPORTS = Path(__file__).parents[2] / "data" / "nsight"
CASE = "s512_b32_h8_d64_fp16"

WORKS = f'cp {REPORTS / "dram.ncu-rep"} "$report"; echo "$@" > "$report.words"'


def library(folder: Path) -> Library:
    manifest = Manifest(namespace="n", sha=None, targets=("sm_90",), key="k", seconds=1.0, sha256="0", kernels=())
    return Library(folder, manifest, cached=True)


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    return Sides(library(tmp_path / "base"), library(tmp_path / "head"))


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(out=tmp_path / "out", capability=(9, 0), timeout_s=10.0)


def fake_ncu(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """A script that finds where the report goes and then does `body`."""
    script = folder / "bin" / "ncu"
    script.parent.mkdir(exist_ok=True)
    find = 'for word in "$@"; do [ "$previous" = --export ] && report="$word"; previous="$word"; done'
    script.write_text(f"#!/bin/sh\n{find}\n{body}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:/usr/bin:/bin")


def test_both_sides_are_profiled_and_summed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sides: Sides, options: Options
) -> None:
    fake_ncu(tmp_path, monkeypatch, WORKS)
    done = nsight.profile(sides, [CASE], options)
    assert done.failures == ()
    assert [(one.case, one.side, one.report) for one in done.profiles] == [
        (CASE, "base", f"{CASE}.base.ncu-rep"),
        (CASE, "head", f"{CASE}.head.ncu-rep"),
    ]
    assert done.profiles[0].metrics["duration_us"] == pytest.approx(181.2, abs=0.1)
    with (options.out / "profile.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    dram = next(row for row in rows if row["metric"] == "dram_pct" and row["side"] == "head")
    assert (dram["label"], dram["unit"]) == ("DRAM throughput", "%")
    assert float(dram["value"]) == pytest.approx(90.3, abs=0.1)
    assert [one["side"] for one in json.loads((options.out / "profile.json").read_text())] == ["base", "head"]


def test_ncu_is_asked_for_one_launch_after_warm_up_with_the_clocks_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sides: Sides, options: Options
) -> None:
    fake_ncu(tmp_path, monkeypatch, WORKS)
    nsight.profile(Sides(None, sides.head), [CASE], options)
    words = (options.out / f"{CASE}.head.ncu-rep.words").read_text().split()
    for option, value in {
        "--clock-control": "none",
        "--launch-skip": "2",
        "--launch-count": "1",
        "--kernel-name": "regex:attention",
    }.items():
        assert words[words.index(option) + 1] == value
    assert words[-2:] == [str((tmp_path / "head").resolve()), CASE]
    assert "--set" not in words


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'; exit 1",
            "only root read the GPU's counters",
        ),
        ("echo '==WARNING== No kernels were profiled.'; echo 'Available Kernels:'; echo '1. add'", "it ran: add"),
        ("echo '==WARNING== No kernels were profiled.'", "no kernel whose name contains 'attention' was launched"),
        ("sleep 60", "ncu was ended after 1 s"),
        ("echo '==ERROR== Failed to find metric sm__x.avg'; exit 1", "ncu reports: Failed to find metric sm__x.avg"),
        ("echo 'Segmentation fault'; exit 139", "ncu ended with 139; its last words: Segmentation fault"),
        ("exit 0", "ncu ended with 0 and wrote no report"),
        ('head -c 20000 /dev/zero > "$report"', "is not an Nsight Compute report"),
    ],
    ids=["permission", "other kernel", "no kernel", "hang", "metric", "crash", "nothing", "no report"],
)
def test_each_failure_is_one_sentence_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sides: Sides, options: Options, body: str, sentence: str
) -> None:
    head_works = f'case "$report" in *head*) {WORKS};; *) {body};; esac'
    fake_ncu(tmp_path, monkeypatch, head_works)
    done = nsight.profile(sides, [CASE], Options(options.out, options.capability, timeout_s=1.0))
    assert [one.side for one in done.profiles] == ["head"]
    (failure,) = done.failures
    assert failure.startswith(f"no profile of base at {CASE}: ")
    assert sentence in failure
    assert "\n" not in failure


def test_without_ncu_nothing_is_profiled(monkeypatch: pytest.MonkeyPatch, sides: Sides, options: Options) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(cuda_tools, "candidates", lambda *_: iter(()))
    done = nsight.profile(sides, [CASE], options)
    assert done.profiles == ()
    assert "ncu, which profiles kernels (Nsight Compute), is neither on PATH" in done.failures[0]


def test_counters_are_those_of_the_gpu() -> None:
    l4, hopper = metrics.quick_counters((8, 9)), metrics.quick_counters((9, 0))
    assert "sm__pipe_tensor_cycles_active_v2.avg.pct_of_peak_sustained_elapsed" in l4
    assert "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed" in hopper
    assert "sm__ops_path_tensor_src_fp16_dst_fp32.sum" in l4
    assert "sm__ops_path_tensor_src_fp16.sum" in hopper
    assert len(l4) == len(hopper) == len(set(hopper))


def test_every_figure_has_a_name_and_a_unit() -> None:
    for metric in (*metrics.METRICS, *metrics.SECTION_METRICS):
        assert metrics.label(metric.key) == metric.label
        assert metrics.unit(metric.key) == metric.unit
    assert metrics.label("stall_barrier") == "barrier"
    assert metrics.label("something_new") == "something_new"
