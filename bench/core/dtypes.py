"""The dtypes of kernels: how they are called, how many bits an element has, and how far an output may lie from the
oracle. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelgate.bench.core.errors import UsageError


@dataclass(frozen=True)
class DtypeFacts:
    bits: int
    torch_name: str
    aliases: tuple[str, ...] = ()
    """Other spellings that people and tools use, in lower case; torch's own counts without being listed."""
    atol: float = 0.0
    """With `rtol`, the tolerance of an output of unit scale. The project sets float16's: 4.1 and 2.05 unit roundoffs u,
    of 2^-11. bfloat16 and fp8 get the same multiples of their own u. A kernel that rounds an intermediate result says
    what it needs of them where it does (csrc/)."""
    rtol: float = 0.0
    smallest: float = 0.5
    """The step between subnormal numbers: no output can be nearer to the oracle than that. Of integers half a step."""

    @property
    def bytes(self) -> int:
        return self.bits // 8


DTYPES: Mapping[str, DtypeFacts] = {
    "fp32": DtypeFacts(32, "float32", ("float",), 2e-4, 2e-4, 2.0**-149),
    "fp16": DtypeFacts(16, "float16", ("half",), 2e-3, 1e-3, 2.0**-24),
    "bf16": DtypeFacts(16, "bfloat16", (), 1.6e-2, 8e-3, 2.0**-133),
    "fp8_e4m3": DtypeFacts(8, "float8_e4m3fn", ("e4m3", "fp8", "float8_e4m3"), 0.256, 0.128, 2.0**-9),
    "fp8_e5m2": DtypeFacts(8, "float8_e5m2", ("e5m2",), 0.512, 0.256, 2.0**-16),
    "int8": DtypeFacts(8, "int8", ("s8",)),
    "int32": DtypeFacts(32, "int32", ("s32",)),
    "int64": DtypeFacts(64, "int64", ("s64", "long")),
    "uint8": DtypeFacts(8, "uint8", ("u8",)),
    "bool": DtypeFacts(8, "bool"),
}
"""By the name that ids, axes and reports use."""

_NAMES = {spelling: name for name, facts in DTYPES.items() for spelling in (name, facts.torch_name, *facts.aliases)}


def canonical(spelling: str) -> str | None:
    """ "torch.Float16" -> "fp16"; None for what is no dtype here."""
    return _NAMES.get(spelling.casefold().removeprefix("torch."))


def known(spelling: str) -> str:
    """The same; raises UsageError for what is no dtype here."""
    if (name := canonical(spelling)) is None:
        raise UsageError(f"there is no dtype {spelling!r}; there are {', '.join(DTYPES)}")
    return name
