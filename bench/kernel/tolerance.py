"""How far an output may be from the reference: |output - reference| <= atol + rtol * |reference| in every element.

For float16 atol is 4.1 and rtol 2.05 times its unit roundoff of 2^-11; bfloat16, whose unit roundoff is 8 times that,
has the same multiples of its own. docs/statistics.md, "Fuzz tolerances", derives them and says for which inputs they
hold.
"""

from __future__ import annotations

from kernelgate.bench.record import Tolerance

TOLERANCES: dict[str, Tolerance] = {
    "fp16": Tolerance(atol=2e-3, rtol=1e-3),
    "bf16": Tolerance(atol=1.6e-2, rtol=8e-3),
    "fp32": Tolerance(atol=2e-4, rtol=2e-4),
}
