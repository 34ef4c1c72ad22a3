"""The policy's section on optimisation sessions: how long each part may take, and when a session stops."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import model_validator

from kernelgate.ci.policy.bounds import PolicySection, between, ordered

Minutes = Annotated[float, between(0.01, 10_000.0)]
Seconds = Annotated[float, between(0.1, 86_400.0)]


class SessionRules(PolicySection):
    """How long the parts of a session may take, when it stops, and how `kernelgate session` watches what it runs."""

    environment_minutes: Minutes = 10.0
    build_minutes: Minutes = 20.0
    bisect_after_minutes: Minutes = 30.0
    correctness_minutes: Minutes = 10.0
    performance_minutes: Minutes = 15.0
    profile_minutes: Minutes = 30.0
    measurement_minutes: Minutes = 20.0
    change_minutes: Minutes = 90.0
    again_minutes: Minutes = 20.0
    document_minutes: Minutes = 20.0
    baseline_measurement_minutes: Minutes = 15.0
    baseline_document_minutes: Minutes = 5.0
    without_gate_minutes: Minutes = 60.0
    report_s: Seconds = 30.0
    silent_s: Seconds = 180.0
    fuzz_s: Seconds = 10.0

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        ordered(self, "report_s", "silent_s")
        ordered(self, "build_minutes", "bisect_after_minutes")
        return self

    @property
    def optimise_minutes(self) -> float:
        """A session that changes a kernel."""
        before = self.environment_minutes + self.measurement_minutes + self.profile_minutes
        return before + self.change_minutes + self.again_minutes + self.document_minutes

    @property
    def baseline_minutes(self) -> float:
        """A session that measures and changes nothing."""
        return self.environment_minutes + self.baseline_measurement_minutes + self.baseline_document_minutes
