"""The dtypes of kernels: how they are called, and how many bits an element has. Plain data."""

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

    @property
    def bytes(self) -> int:
        return self.bits // 8


DTYPES: Mapping[str, DtypeFacts] = {
    "fp32": DtypeFacts(32, "float32", ("float",)),
    "fp16": DtypeFacts(16, "float16", ("half",)),
    "bf16": DtypeFacts(16, "bfloat16"),
    "fp8_e4m3": DtypeFacts(8, "float8_e4m3fn", ("e4m3", "fp8", "float8_e4m3")),
    "fp8_e5m2": DtypeFacts(8, "float8_e5m2", ("e5m2",)),
    "int8": DtypeFacts(8, "int8", ("s8",)),
    "int32": DtypeFacts(32, "int32", ("s32",)),
    "int64": DtypeFacts(64, "int64", ("s64", "long")),
    "uint8": DtypeFacts(8, "uint8", ("u8",)),
    "bool": DtypeFacts(8, "bool"),
}
"""By the name that ids, axes and reports use."""

_NAMES = {spelling: name for name, facts in DTYPES.items() for spelling in (name, facts.torch_name, *facts.aliases)}

PROSE = tuple(spelling for spelling in _NAMES if spelling not in ("float", "long", "bool", "s8", "s32", "s64", "u8"))
"""The spellings that mean a dtype in a sentence, too."""


def canonical(spelling: str) -> str | None:
    """ "torch.Float16" -> "fp16"; None for what is no dtype here."""
    return _NAMES.get(spelling.casefold().removeprefix("torch."))


def known(spelling: str) -> str:
    """The same; raises UsageError for what is no dtype here."""
    name = canonical(spelling)
    if name is None:
        raise UsageError(f"there is no dtype {spelling!r}; there are {', '.join(DTYPES)}")
    return name
