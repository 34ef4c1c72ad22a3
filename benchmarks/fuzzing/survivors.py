"""The bugs that nothing catches yet, and why: to be emptied."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.fuzzing.bug import Device

FEW_CALLS = "the whole list makes fewer than 400 calls, each configuration two"
CONTIGUOUS = "every tensor is contiguous"
FINITE = "no input holds NaN or Inf"
LARGEST = "the largest configuration on a CPU has 24 heads times batches"
HUGE = "no tensor has more than 2 GiB"
WITHIN = "the error is within the tolerance; it takes a measurement of accuracy to see it"

SURVIVORS: Mapping[tuple[str, Device], str] = {
    ("attention/binding/every-400th-call", "cpu"): FEW_CALLS,
    ("attention/binding/heads-1024-lost", "cpu"): LARGEST,
    ("attention/binding/scale-clamped", "cpu"): "the card draws no scale above 1/4",
    ("attention/binding/scale-sign-lost", "cpu"): "the card draws no negative scale",
    ("attention/binding/strided-output-taken", "cpu"): CONTIGUOUS,
    ("attention/binding/strided-value-taken", "cpu"): CONTIGUOUS,
    ("attention/cpu/exp2-digits-swapped", "cpu"): WITHIN,
    ("attention/cpu/heads-folded-1024", "cpu"): LARGEST,
    ("attention/cpu/infinity-read-as-65536", "cpu"): FINITE,
    ("attention/cpu/nan-weighs-nothing", "cpu"): FINITE,
    ("attention/cpu/offset-32-bit", "cpu"): HUGE,
    ("attention/cpu/output-truncated", "cpu"): WITHIN,
    ("attention/cpu/seq-cut-1024", "cpu"): "no configuration is longer than 1,024",
    ("rmsnorm/binding/every-400th-call", "cpu"): FEW_CALLS,
    ("rmsnorm/binding/strided-weight-taken", "cpu"): CONTIGUOUS,
    ("rmsnorm/binding/strided-x-taken", "cpu"): CONTIGUOUS,
    ("rmsnorm/cpu/infinity-left-out", "cpu"): FINITE,
    ("rmsnorm/cpu/offset-32-bit", "cpu"): HUGE,
    ("rmsnorm/cpu/one-column-not-normalised", "cpu"): "few seeds draw N = 1",
    ("rmsnorm/cpu/rounded-twice", "cpu"): WITHIN,
    ("rmsnorm/cpu/rows-folded-65536", "cpu"): "the card draws no more than 600 rows",
    ("int8_gemm/binding/every-400th-call", "cpu"): FEW_CALLS,
    ("int8_gemm/binding/strided-taken", "cpu"): CONTIGUOUS,
    ("int8_gemm/cpu/float-sum", "cpu"): "the card draws no K of 1,024 or more",
}
"""By the bug's id and the device."""
