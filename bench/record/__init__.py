"""The run record, `kernelgate.run/2`: the one thing that crosses from `bench` to `ci`.

Times are in microseconds, sizes in bytes, rates in SI units, clocks in MHz. Unknown keys are refused; what a producer
cannot know is null or left out. Only the fields that a judgement needs can make it refuse, so every other field has a
default.
"""

# ruff: noqa: F403

from kernelgate.bench.record.findings import *
from kernelgate.bench.record.run_record import *
from kernelgate.bench.record.shards import *
from kernelgate.bench.record.subjects import *
