"""The run record, `kernelgate.run/2`: the one thing that crosses from `bench` to `ci`.

Times are in microseconds, sizes in bytes, rates in SI units, clocks in MHz. Unknown keys are refused; what a producer
cannot know is null or left out. Only the fields that a judgement needs can make it refuse, so every other field has a
default. `v1.py` reads `kernelgate.run/1`.
"""

from kernelgate.bench.record.base import (
    COMPARED,
    Axes,
    CheckKind,
    Count,
    Finite,
    Microseconds,
    Model,
    NonNegative,
    Positive,
    Role,
    Share,
    Side,
)
from kernelgate.bench.record.builds import Build, KernelFacts
from kernelgate.bench.record.files import from_json, json_schema, read, to_json, write
from kernelgate.bench.record.findings import (
    BaselineDay,
    BaselineSummary,
    Check,
    CheckFinding,
    Cost,
    FuzzResult,
    Note,
    Profile,
    Summary,
)
from kernelgate.bench.record.identity import (
    Card,
    Case,
    CaseKey,
    Device,
    Environment,
    Expected,
    Numerics,
    Run,
    Shard,
    Tolerance,
    Work,
    expected_hash,
)
from kernelgate.bench.record.processes import Calls, Condensed, OutputErrors, Process, Telemetry, Timing
from kernelgate.bench.record.run_record import SCHEMA, RunRecord, TimedCase, TimedProcess, timed_cases

__all__ = [
    "COMPARED",
    "SCHEMA",
    "Axes",
    "BaselineDay",
    "BaselineSummary",
    "Build",
    "Calls",
    "Card",
    "Case",
    "CaseKey",
    "Check",
    "CheckFinding",
    "CheckKind",
    "Condensed",
    "Cost",
    "Count",
    "Device",
    "Environment",
    "Expected",
    "Finite",
    "FuzzResult",
    "KernelFacts",
    "Microseconds",
    "Model",
    "NonNegative",
    "Note",
    "Numerics",
    "OutputErrors",
    "Positive",
    "Process",
    "Profile",
    "Role",
    "Run",
    "RunRecord",
    "Shard",
    "Share",
    "Side",
    "Summary",
    "Telemetry",
    "TimedCase",
    "TimedProcess",
    "Timing",
    "Tolerance",
    "Work",
    "expected_hash",
    "from_json",
    "json_schema",
    "read",
    "timed_cases",
    "to_json",
    "write",
]
