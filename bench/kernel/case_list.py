"""The cases that are timed: one shape and dtype each, its id, and the work that one call must do.

An id and a case are two spellings of one thing: `parse(case.id) == case`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Literal, cast

from kernelgate.bench import record
from kernelgate.bench.dtypes import DTYPES, OF_KERNELS
from kernelgate.bench.errors import UsageError
from kernelgate.bench.kernel.tolerance import TOLERANCES

HEAD_DIM = 64
MAX_SEQ = 4096
SCALE = HEAD_DIM**-0.5
"""The softmax scale of every timed case: PyTorch's own default."""

CARD = "attention"
"""The kernel that all cases are of."""
ATTENTION = record.Card(name=CARD, label="Attention", build="extension", reference="PyTorch")

Dtype = Literal["fp16", "bf16", "fp32"]

_ID = re.compile(
    r"s(?P<seq>[1-9]\d*)_b(?P<batch>[1-9]\d*)_h(?P<heads>[1-9]\d*)_d64_"
    rf"(?P<dtype>{'|'.join(OF_KERNELS)})(?P<causal>_causal)?"
)


@dataclass(frozen=True)
class SuiteCase:
    """Attention forward on tensors of shape (batch, heads, seq, 64)."""

    seq: int
    batch: int
    heads: int
    dtype: Dtype
    causal: bool = False

    @property
    def id(self) -> str:
        causal = "_causal" if self.causal else ""
        return f"s{self.seq}_b{self.batch}_h{self.heads}_d{HEAD_DIM}_{self.dtype}{causal}"

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return (self.batch, self.heads, self.seq, HEAD_DIM)

    @property
    def tensor_bytes(self) -> int:
        """Of q, of k, of v and of the output."""
        return self.batch * self.heads * self.seq * HEAD_DIM * DTYPES[self.dtype].bytes

    @property
    def axes(self) -> record.Axes:
        """As the record holds them."""
        return {
            "S": float(self.seq),
            "B": float(self.batch),
            "H": float(self.heads),
            "D": float(HEAD_DIM),
            "dtype": self.dtype,
            "causal": float(self.causal),
        }

    @property
    def work(self) -> record.Work:
        """What one call must do at least.

        Two products of one multiplication and one addition for each query, visible key and channel; q, k and v read
        once, the output written once. Exponentials are not counted, as is the custom for attention.
        """
        pairs = self.seq * (self.seq + 1) // 2 if self.causal else self.seq * self.seq
        return record.Work(
            flops=float(4 * self.batch * self.heads * HEAD_DIM * pairs), bytes=float(4 * self.tensor_bytes)
        )


def recorded(case: SuiteCase) -> record.Case:
    """The case as a record holds it."""
    return record.Case(card=CARD, id=case.id, axes=case.axes, work=case.work, tolerance=TOLERANCES[case.dtype])


def expected(
    cases: Iterable[SuiteCase],
    processes: int,
    label: str | None = None,
    target: str | None = None,
    checks: tuple[record.CheckKind, ...] = ("fuzz",),
) -> record.Expected:
    """What a whole measurement of these cases holds: each in so many processes, and the results of the checks.

    `label` and `target`: the GPU's label in the policy and its compute capability, where a particular one is meant.
    """
    return record.Expected(
        label=label,
        target=target,
        cards=(ATTENTION,),
        cases=tuple(map(recorded, cases)),
        checks=checks,
        processes=processes,
    )


def parse(case_id: str) -> SuiteCase:
    """The case that an id names. Raises UsageError where it names none."""
    found = _ID.fullmatch(case_id)
    if found is None or int(found["seq"]) > MAX_SEQ:
        raise UsageError(
            f"{case_id!r} is not a case; use s<S>_b<B>_h<H>_d64_<{'|'.join(OF_KERNELS)}>[_causal] "
            f"with S up to {MAX_SEQ}, such as s512_b32_h8_d64_fp16"
        )
    dtype = cast(Dtype, found["dtype"])
    return SuiteCase(int(found["seq"]), int(found["batch"]), int(found["heads"]), dtype, found["causal"] is not None)


def _target_first(cases: Iterable[SuiteCase]) -> tuple[SuiteCase, ...]:
    """With the target case in front: of a run that is cut short, it is known best."""
    return tuple(sorted(cases, key=lambda case: case != TARGET))


TARGET = SuiteCase(512, 32, 8, "fp16")
"""The case that the kernel is tuned for."""

SUITES: dict[str, tuple[SuiteCase, ...]] = {
    "pr": (
        *_target_first(SuiteCase(512, batch, heads, "fp16") for batch, heads in product((16, 32, 48), (4, 8, 16))),
        SuiteCase(512, 32, 8, "fp16", causal=True),
        SuiteCase(512, 32, 8, "bf16"),
    ),
    "full": _target_first(
        SuiteCase(seq, batch, heads, "fp16") for seq, batch, heads in product((448, 512, 640), (16, 32, 48), (4, 8, 16))
    ),
    "cpu": (
        SuiteCase(512, 1, 8, "fp32"),
        SuiteCase(512, 1, 8, "fp32", causal=True),
        SuiteCase(512, 1, 4, "bf16"),
    ),
}


def default_suite(device: str) -> str:
    """The name of the suite for "cuda" or "cpu"."""
    return "pr" if device == "cuda" else "cpu"


def select(device: str, suite: str | None, case_ids: Iterable[str]) -> tuple[SuiteCase, ...]:
    """The cases that were asked for: the ids where there are any, else the suite, else the device's default.

    Raises UsageError for an id or a suite that does not exist, and for a case that the device cannot run.
    """
    cases = tuple(dict.fromkeys(parse(case_id) for case_id in case_ids))
    if cases and suite:
        raise UsageError("name either cases or a suite, not both")
    if suite is not None and suite not in SUITES:
        raise UsageError(f"there is no suite {suite!r}; there are {', '.join(SUITES)}")
    chosen = cases or SUITES[suite or default_suite(device)]
    floats = [case.id for case in chosen if case.dtype == "fp32"]
    if device == "cuda" and floats:
        raise UsageError(f"the CUDA kernel takes fp16 and bf16, not fp32: {', '.join(floats)}")
    return chosen
