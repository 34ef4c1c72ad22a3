"""Numbers with units, and names that people use."""

from __future__ import annotations

import pytest

from kernelgate.bench.record import Axes, Device
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code


@pytest.mark.parametrize(
    ("change", "interval", "shown", "size"),
    [
        (4.9, (4.8, 5.0), ("+4.9%", "[+4.8, +5.0]"), ("4.9%", "(4.8 to 5.0%)")),
        (-12.8, (-13.0, -12.6), ("−12.8%", "[−13.0, −12.6]"), ("12.8%", "(12.6 to 13.0%)")),
        (-0.01, (-0.3, 0.3), ("0.0%", "[−0.3, +0.3]"), ("0.0%", "(−0.3 to 0.3%)")),
        (None, None, ("not measured", ""), ("an unknown amount", "(not measured)")),
        (1e300, (1e299, 1e301), ("over +100,000%", "[over +100,000, over +100,000]"),
         ("over 100,000%", "(over 100,000 to over 100,000%)")),
    ],
)  # fmt: skip
def test_a_change_never_stands_without_its_interval(
    change: float | None, interval: tuple[float, float] | None, shown: tuple[str, str], size: tuple[str, str]
) -> None:
    assert formatting.signed(change, interval) == shown
    assert formatting.amount(change, interval) == size


@pytest.mark.parametrize(
    ("axes", "label"),
    [
        ({"S": 4096.0, "causal": True, "bias": False, "dtype": "torch.bfloat16"}, "S=4096 causal bf16"),
        ({"S": "512 @you", "dtype": "fp16"}, None),
        ({"@you": 512}, None),
    ],
)
def test_a_label_is_made_of_axes_that_are_plainly_words_and_numbers(axes: Axes, label: str | None) -> None:
    assert formatting.label(axes) == label


@pytest.mark.parametrize(
    ("device", "said", "on_cpu"),
    [
        (Device(name="NVIDIA L4 is fine"), (" on ", Code("NVIDIA L4 is fine")), False),
        (Device(name="AMD EPYC 7B13 64-Core Processor"), (" on AMD EPYC",), True),
        (Device(name="AMD Instinct MI300X", driver="6.2"), (" on ", Code("AMD Instinct MI300X")), False),
    ],
)
def test_a_device_is_called_by_its_usual_name(device: Device, said: tuple[object, ...], on_cpu: bool) -> None:
    assert formatting.device(device) == said
    assert formatting.on_cpu(device) == on_cpu
