"""What Nsight Compute wrote on another day, of an H200: unpacked and read once, which takes a second each.

`BEFORE` is of an attention kernel, `AFTER` of one with half the blocks on a multiprocessor.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import ncu_report

from kernelgate.bench.explain import ncu_reader

FOLDER = Path(__file__).parents[1] / "data/nsight"


@dataclass(frozen=True)
class Report:
    data: bytes
    figures: Mapping[str, float]


def read(name: str) -> Report:
    data = unpacked(FOLDER / name)
    with tempfile.NamedTemporaryFile(suffix=".ncu-rep") as file:
        file.write(data)
        file.flush()
        return Report(data, ncu_reader.launches(file.name)[0].figures)


def unpacked(report: Path) -> bytes:
    """A `.ncu-repz` as the `.ncu-rep` that it was made from, by the code that reads both."""
    zstd = ctypes.CDLL(ncu_report._ncu_report.__file__)
    zstd.ZSTD_decompressBound.restype = zstd.ZSTD_decompress.restype = ctypes.c_size_t
    packed = report.read_bytes()
    most = zstd.ZSTD_decompressBound(packed, ctypes.c_size_t(len(packed)))
    room = ctypes.create_string_buffer(most)
    size = zstd.ZSTD_decompress(room, ctypes.c_size_t(most), packed, ctypes.c_size_t(len(packed)))
    return room.raw[:size]


BEFORE, AFTER = read("attention_before.ncu-repz"), read("attention_occupancy.ncu-repz")
