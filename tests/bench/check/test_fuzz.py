"""The fuzzer finds what is wrong, says so in a way that helps, and survives kernels that crash or hang."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import get_args

import pytest
import torch

from kernelgate.bench import record
from kernelgate.bench.build.library import Library
from kernelgate.bench.check import fuzz, fuzz_worker
from kernelgate.bench.errors import KernelgateError, UsageError
from kernelgate.bench.kernel.tolerance import TOLERANCES
from kernelgate.bench.system import lock
from kernelgate.ci import cli
from tests import faulty
from tests.bench.machine import CPU

SEED = 1
DRAWN = fuzz.trials(SEED, "cpu")
CAUSAL = [trial.id for trial in DRAWN if trial.causal and trial.seq > 1]
FULL = [trial.id for trial in DRAWN if not trial.causal and trial.seq > 1]

Build = Callable[[str], Library]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Builds a faulty kernel."""

    def build(fault: str) -> Library:
        return faulty.build(tmp_path_factory.mktemp(fault) / "library", f"fuzz_{fault}", fault)

    return build


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock.tempfile, "tempdir", str(tmp_path))


# ----------------------------------------------------------------------------------------------------------------------
# The list
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_the_list_is_the_27_configurations_and_the_11_edges(device: str) -> None:
    trials = fuzz.trials(7, device)  # type: ignore[arg-type]
    assert len(trials) == 27 + 11 == len({trial.id for trial in trials})
    names = {f"s{s}_b{b}_h{h}" for s, b, h in product((448, 512, 640), (16, 32, 48), (4, 8, 16))}
    edges = {f"edge_s{s}": s for s in (1, 4, 63, 64, 65, 127, 128, 192, 256, 513, 1024)}
    assert {trial.id for trial in trials} == names | set(edges)
    assert all(trial.seq == edges[trial.id] for trial in trials if trial.id in edges)


def test_names_say_the_sizes_on_a_gpu_and_a_cpu_takes_fewer() -> None:
    sizes = {trial.id: (trial.batch, trial.heads) for trial in fuzz.trials(7, "cuda")}
    fewer = {trial.id: (trial.batch, trial.heads) for trial in fuzz.trials(7, "cpu")}
    assert sizes["s512_b48_h16"] == (48, 16)
    assert fewer["s512_b48_h16"] == (6, 4)
    assert min(min(size) for size in fewer.values()) >= 1


@pytest.mark.parametrize(("device", "dtypes"), [("cuda", {"fp16", "bf16"}), ("cpu", {"fp32", "fp16", "bf16"})])
@pytest.mark.parametrize("seed", range(5))
def test_every_combination_is_run_every_time(device: str, dtypes: set[str], seed: int) -> None:
    trials = fuzz.trials(seed, device)  # type: ignore[arg-type]
    seen = {(trial.dtype, trial.causal, trial.distribution) for trial in trials}
    assert seen == set(product(dtypes, (False, True), get_args(fuzz.Distribution)))


def test_sizes_are_ragged_and_nominal_scales_are_the_default_and_others() -> None:
    around = [trial for seed in range(5) for trial in fuzz.trials(seed, "cuda") if not trial.id.startswith("edge")]
    away = [trial.seq - int(trial.id.split("_")[0][1:]) for trial in around]
    assert 0 in away
    assert min(away) < -10
    assert max(away) > 10
    assert max(map(abs, away)) <= fuzz.JITTER
    scales = {trial.scale for trial in around}
    assert 0.125 in scales
    assert len(scales) > 20
    assert all(fuzz.SCALES[0] <= scale <= fuzz.SCALES[1] for scale in scales)


def test_a_seed_repeats_the_list_and_another_one_does_not() -> None:
    assert fuzz.trials(3, "cpu") == fuzz.trials(3, "cpu")
    assert fuzz.trials(3, "cpu") != fuzz.trials(4, "cpu")
    assert fuzz.select(3, "cpu", ["s512_b32_h8"]) == tuple(t for t in fuzz.trials(3, "cpu") if t.id == "s512_b32_h8")


def test_an_id_that_is_not_in_the_list() -> None:
    with pytest.raises(UsageError, match=r"no fuzz case s1_b2; there are s448_b16_h4, .* edge_s1024"):
        fuzz.select(3, "cpu", ["s512_b32_h8", "s1_b2"])


# ----------------------------------------------------------------------------------------------------------------------
# Inputs
# ----------------------------------------------------------------------------------------------------------------------


def drawn(distribution: str, dtype: str, causal: bool = False) -> fuzz_worker.Inputs:
    trial = DRAWN[0].model_copy(
        update={"distribution": distribution, "causal": causal, "seq": 200, "batch": 2, "heads": 2, "scale": 0.125}
    )
    draw = fuzz_worker.Draw(trial, "cpu", torch.Generator().manual_seed(5))
    q, k, v = fuzz_worker.DRAWS[distribution](draw)  # type: ignore[index]
    to = fuzz_worker.oracle.TORCH_DTYPES[dtype]
    return q.to(to), k.to(to), v.to(to)


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize("distribution", get_args(fuzz.Distribution))
def test_inputs_are_finite_and_not_all_zero(distribution: str, dtype: str) -> None:
    for tensor in drawn(distribution, dtype):
        assert torch.isfinite(tensor).all()
        assert tensor.count_nonzero() > 0.9 * tensor.numel()


def test_large_scores_overflow_where_the_maximum_is_not_taken_off() -> None:
    q, k, _ = drawn("large", "fp32")
    assert (q @ k.transpose(-1, -2) * 0.125).exp().isinf().any()


def test_tiny_values_are_checked_at_their_own_scale() -> None:
    q, k, v = drawn("tiny", "fp16")
    expected = fuzz_worker.oracle.expected(q, k, v, 0.125, False)
    zeros = torch.zeros_like(expected)
    scale = fuzz_worker.VALUE_SCALES["tiny"]
    assert fuzz_worker.oracle.compare(zeros, expected, TOLERANCES["fp16"]).passed, "atol alone would let zeros pass"
    assert not fuzz_worker.oracle.compare(zeros, expected, TOLERANCES["fp16"], scale).passed


@pytest.mark.parametrize("causal", [False, True])
def test_peaked_inputs_give_one_key_each_that_may_be_seen(causal: bool) -> None:
    q, k, _ = drawn("peaked", "fp32", causal)
    scores = q @ k.transpose(-1, -2) * 0.125
    if causal:
        scores = scores.masked_fill(torch.ones(200, 200, dtype=torch.bool).triu(1), -torch.inf)
    weights, keys = scores.softmax(-1).max(-1)
    assert weights.median() > 0.99
    assert len(keys.unique()) > 50


# ----------------------------------------------------------------------------------------------------------------------
# Faults
# ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("in_process")
def test_a_right_kernel_passes_everything(built: Build, capsys: pytest.CaptureFixture[str]) -> None:
    done = fuzz.run(built("none"), SEED, CPU)
    assert (done.status, done.seed, len(done.results)) == ("passed", SEED, 38)
    assert done.tolerance == record.Tolerance(atol=2e-3, rtol=1e-3)
    assert all(result.passed and result.message is None and (result.error_ratio or 0) <= 1 for result in done.results)
    assert fuzz.exit_code(done) == 0
    assert fuzz.summary(done) == "fuzz: 38 of 38 configurations passed, seed 1"
    said = capsys.readouterr().err
    assert "seed 1" in said
    assert "batches are 8 and heads 4 times fewer than in their names (B=6 H=4 at most)" in said


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (
            "skips_last_row",
            r"^384 of 24960 elements, the first at \[b, h, s, d\] = \[0, 0, 64, 0\], are never written$",
        ),
        ("writes_nan", r"^the element at \[b, h, s, d\] = \[0, 0, 64, 5\] is NaN or Inf$"),
        ("reads_past_input", r"^64 of 24960 elements, the first at \[b, h, s, d\] = \[1, 2, 64, 0\], are NaN or Inf$"),
        (
            "slightly_wrong",
            r"^error [\d.]+, at \[b, h, s, d\] = \[1, 2, 64, 7\] of shape \[2, 3, 65, 64\] [\d.e+]+ times ",
        ),
        ("writes_before_output", r"^the kernel wrote to memory outside the output$"),
        ("changes_input", r"^the kernel wrote to its input k$"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(
    built: Build, fault: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = fuzz.run(built(fault), SEED, CPU, ["edge_s63", "edge_s65"])
    assert done.status == "failed"
    assert fuzz.exit_code(done) == 1
    result = done.results[1]
    assert not result.passed
    assert re.search(says, result.message or ""), result.message
    assert fuzz.failure(result) in capsys.readouterr().err


@pytest.mark.usefixtures("in_process")
def test_a_kernel_that_ignores_the_mask_fails_where_there_is_one(built: Build) -> None:
    done = fuzz.run(built("ignores_mask"), SEED, CPU, [*CAUSAL[:3], *FULL[:3]])
    assert [result.passed for result in done.results] == [False] * 3 + [True] * 3


@pytest.mark.usefixtures("in_process")
def test_an_error_that_a_kernel_raises_fails_its_case_alone(built: Build) -> None:
    ids = [CAUSAL[0], FULL[0], *CAUSAL[1:5], FULL[1]]
    done = fuzz.run(built("raises_if_causal"), SEED, CPU, ids)
    assert [result.passed for result in done.results] == [False, True, False, False, False, False, True]
    assert done.results[0].message == "the kernel raised an error: causal is not implemented"
    assert done.results[0].max_abs_error is None


def test_a_crash_fails_its_case_and_the_list_goes_on(built: Build) -> None:
    done = fuzz.run(built("crashes_if_causal"), SEED, CPU, [FULL[0], CAUSAL[0], FULL[1]])
    assert [result.passed for result in done.results] == [True, False, True]
    assert done.results[1].message == "the process was killed by SIGSEGV; last lines of stderr: about to crash"


def test_a_hang_fails_its_case_and_the_list_goes_on(built: Build) -> None:
    done = fuzz.run(built("hangs_if_causal"), SEED, CPU, [CAUSAL[0], FULL[0]], patience_s=8)
    assert [result.passed for result in done.results] == [False, True]
    assert "did not answer for 8 s and was killed" in (done.results[0].message or "")


def test_after_three_crashes_the_rest_is_not_run(built: Build) -> None:
    done = fuzz.run(built("crashes_if_causal"), SEED, CPU, [*CAUSAL[:4], FULL[0]])
    assert [result.passed for result in done.results] == [False] * 5
    assert [(result.message or "").split(",")[0] for result in done.results[2:]] == [
        "the process was killed by SIGSEGV; last lines of stderr: about to crash",
        "not run",
        "not run",
    ]


def test_what_a_kernel_prints_does_no_harm(built: Build) -> None:
    assert fuzz.run(built("prints"), SEED, CPU, ["edge_s4"]).status == "passed"


@pytest.mark.usefixtures("in_process")
def test_a_library_that_cannot_be_loaded(tmp_path: Path) -> None:
    broken = faulty.build(tmp_path / "broken", "fuzz_broken")
    broken.path.write_bytes(b"no library")
    with pytest.raises(KernelgateError, match=r"not the file that .* describes"):
        fuzz.run(broken, SEED, CPU, ["edge_s4"])


# ----------------------------------------------------------------------------------------------------------------------
# The verb
# ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.mark.usefixtures("in_process")
def test_the_command_of_a_failure_repeats_it(built: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library = built("slightly_wrong")
    failed = fuzz.run(library, 11, CPU, ["edge_s65", "s448_b16_h4"]).results[1]
    words = shlex.split(failed.repeat or "")
    assert words == ["kernelgate", "fuzz", "--seed", "11", "--case", "s448_b16_h4"]
    output = tmp_path / "fuzz.json"
    capsys.readouterr()
    assert cli.run([*words[1:], "--library", str(library.folder), "-o", str(output)]) == 1
    told = capsys.readouterr()
    assert "fuzz: 0 of 1 configurations passed, seed 11" in told.out
    assert failed.message is not None
    assert failed.message in told.err
    written = record.read(output)
    assert written.fuzz is not None
    assert written.fuzz.results == (failed,)
    assert written.environment.torch == torch.__version__


def test_without_a_kernel_it_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(["fuzz", "-o", "fuzz.json"]) == 2
    told = capsys.readouterr().out.strip()
    assert record.read(tmp_path / "fuzz.json").fuzz == fuzz.skipped(told.removeprefix("fuzz: skipped: "))


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--case", "nothing", "--library", "LIBRARY"], 64, "there is no fuzz case nothing"),
        (["--ref", "HEAD", "--library", "LIBRARY"], 64, "not both"),
        (["--library", "/nowhere"], 3, "/nowhere holds no compiled kernel"),
        (["--seed", "-1"], 64, "-1"),
    ],
)
def test_bad_words_give_one_sentence(
    built: Build, words: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(built("none").folder) if "LIBRARY" in words else ""
    assert cli.run(["fuzz", *(folder if word == "LIBRARY" else word for word in words)]) == code
    assert says in capsys.readouterr().err
