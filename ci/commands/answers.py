"""What the verbs that have no package of their own print with --json, one object each.

Fields are added, never renamed or removed; a program ignores those that it does not know. What the verb says to people
goes to stderr, and its exit code is the same with --json and without. One that could not run prints none:
stderr says why. `ci/commands/schemas.py` has the list of all answers.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from kernelgate.bench.record import Check, KernelFacts, Profile, Side
from kernelgate.ci.document.answer import VerbAnswer


class BuiltLibrary(VerbAnswer):
    card: str
    sha: str | None
    """The commit; None for the working tree."""
    targets: tuple[str, ...]
    path: str
    cached: bool
    """Whether nothing had to be compiled."""
    seconds: float
    """That compiling took, once."""


class BuildAnswer(VerbAnswer):
    libraries: tuple[BuiltLibrary, ...]
    left_out: dict[str, str]
    """Cards without a library, and why."""


class FuzzAnswer(VerbAnswer):
    checks: tuple[Check, ...]
    """One for each card."""


class SoakedCard(VerbAnswer):
    card: str
    tried: int
    failed: int
    repeat: dict[str, str]
    """Of each different failure, the command that repeats it."""
    said: str


class SoakAnswer(VerbAnswer):
    soaked: tuple[SoakedCard, ...]


class BenchAnswer(VerbAnswer):
    record: str
    """The file."""
    cases: int
    processes: int
    gpu_seconds: float
    next: str
    """The command that judges it."""


class ProfileAnswer(VerbAnswer):
    profiles: tuple[Profile, ...]
    reports: tuple[str, ...]
    """Files for `kernelgate analyze`."""
    failures: tuple[str, ...]


class SanitizeAnswer(VerbAnswer):
    checks: tuple[Check, ...]


class DoctorCheck(VerbAnswer):
    name: str
    level: Literal["passed", "warning", "failed"]
    found: str
    fix: str | None


class DoctorAnswer(VerbAnswer):
    fit: bool
    checks: tuple[DoctorCheck, ...]


class DecideAnswer(VerbAnswer):
    priority: str
    sentence: str
    command: str
    stops: bool
    """Profile before anything else; exit code 1."""
    keep: str | None
    """With --before-ms: whether the fix is worth keeping."""


class PrAnswer(VerbAnswer):
    blocks: bool
    conclusion: str
    """Of the check run that a pull request would get."""
    why: str
    files: tuple[str, ...]


class PrunedLibrary(VerbAnswer):
    name: str
    bytes: int


class CacheAnswer(VerbAnswer):
    folder: str
    removed: tuple[PrunedLibrary, ...]
    in_use: tuple[PrunedLibrary, ...]
    kept: int
    kept_bytes: int


class ReportAnswer(VerbAnswer):
    markdown: str
    """The comment."""
    files: tuple[str, ...]
    """That were written."""


class TemplateAnswer(VerbAnswer):
    blocks: bool
    text: str


class PromptAnswer(VerbAnswer):
    session: str
    text: str
    """Markdown."""


class ResourcesOfKernel(KernelFacts):
    card: str
    side: Side


class StaticRemark(VerbAnswer):
    code: str
    severity: str
    kernel: str
    target: str
    message: str
    card: str


class ResourcesAnswer(VerbAnswer):
    resources: tuple[ResourcesOfKernel, ...]
    findings: tuple[StaticRemark, ...]


class TileAnswer(VerbAnswer):
    """Of `resources --tile`: whether a block fits on a multiprocessor, and how many of them."""

    gpu: str
    fits: bool
    shared_bytes: int
    """Of a block."""
    threads: int
    registers: int | None
    """Of a thread, about; null where bytes were given and no tile."""
    least_registers: int | None
    """For the thread's share of the tile alone."""
    blocks: int | None
    warps: int | None
    occupancy_pct: float | None
    limits: tuple[str, ...]
    """What keeps more blocks away."""
    said: str


class AdviceRow(VerbAnswer):
    name: str
    """Of the action, in `ci/explain/actions.py`; stable."""
    action: str
    reason: str
    expected_gain_pct: float | None
    source: str
    link: str


class AnalysedKernel(VerbAnswer):
    kernel: str
    duration_us: float | None
    bottleneck: str
    confidence: float
    metrics: dict[str, float]
    roofline: dict[str, float | str | None]
    recommendations: tuple[AdviceRow, ...]


class AnalyzeAnswer(VerbAnswer):
    kernels: tuple[AnalysedKernel, ...]
    against: tuple[AnalysedKernel, ...] = ()
    changes: tuple[dict[str, Any], ...] = ()
    budgets: tuple[dict[str, Any], ...] = ()


class CardMistakeRow(VerbAnswer):
    file: str
    line: int | None
    member: str
    text: str


class CheckedCard(VerbAnswer):
    card: str
    mistakes: tuple[str, ...]
    right: str | None
    """What was tried and found right."""


class ListedCards(VerbAnswer):
    cards: tuple[dict[str, Any], ...]
    mistakes: tuple[CardMistakeRow, ...]
    """In cards that cannot be read."""
    checked: tuple[CheckedCard, ...]
    """Empty with --list."""


class BisectAnswer(VerbAnswer):
    """Of `bisect`: docs/bisect.md says which fields --fuzz and --build have."""

    culprits: tuple[str, ...]
    case: str | None = None
    found: str | None = None
    chance: float | None = None
    change_pct: float | None = None
    interval_pct: tuple[float, float] | None = None
    several: tuple[dict[str, Any], ...] = ()
    stepped_over: dict[str, str] = Field(default_factory=dict)
    processes: int | None = None
    seed: int | None = None
    fault: str | None = None
    repeat: str | None = None
    failed: int | None = None
    runs: int | None = None
    passes: int | None = None
    last_that_compiles: str | None = None
    why: str | None = None
    inside: dict[str, Any] | None = None
    """The same of the submodule that the culprit moves, with its path `submodule`; or `why` it was not searched."""
