"""How far an output may be from the oracle: |output - oracle| <= atol * scale + rtol * |oracle| in every element.

For float16 atol is 4.1 and rtol 2.05 times its unit roundoff of 2^-11; bfloat16 and the 8-bit floats, whose unit
roundoffs are 8, 128 and 256 times that, have the same multiples of their own. Integers are exact. docs/statistics.md,
"Fuzz tolerances", derives them and says for which inputs they hold.
"""

from __future__ import annotations

from kernelgate.bench.record import Tolerance

TOLERANCES: dict[str, Tolerance] = {
    "fp16": Tolerance(atol=2e-3, rtol=1e-3),
    "bf16": Tolerance(atol=1.6e-2, rtol=8e-3),
    "fp32": Tolerance(atol=2e-4, rtol=2e-4),
    "fp8_e4m3": Tolerance(atol=0.256, rtol=0.128),
    "fp8_e5m2": Tolerance(atol=0.512, rtol=0.256),
    "int8": Tolerance(atol=0.0, rtol=0.0),
    "int32": Tolerance(atol=0.0, rtol=0.0),
    "int64": Tolerance(atol=0.0, rtol=0.0),
    "uint8": Tolerance(atol=0.0, rtol=0.0),
    "bool": Tolerance(atol=0.0, rtol=0.0),
}
"""By the dtype of an output, for values of unit scale."""

SMALLEST: dict[str, float] = {
    "fp16": 2.0**-24,
    "bf16": 2.0**-133,
    "fp32": 2.0**-149,
    "fp8_e4m3": 2.0**-9,
    "fp8_e5m2": 2.0**-16,
    **dict.fromkeys(("int8", "int32", "int64", "uint8", "bool"), 0.5),
}
"""The step between subnormal numbers: no output can be nearer to the oracle than that. Of integers half a step."""


def of_output(output: str, case: str | None) -> Tolerance:
    """The tolerance of an output's dtype; of a float that is computed from coarser floats, theirs."""
    own, inputs = TOLERANCES[output], TOLERANCES.get(case or output)
    floats = own.atol and inputs and inputs.atol
    return max(own, inputs, key=lambda one: one.atol or 0.0) if floats and inputs else own
