"""The policy's section `[advice]`: from when on outcomes are asked what to try next, and how they are pooled."""

from __future__ import annotations

from typing import Annotated

from kernelgate.ci.policy.bounds import PolicySection, Positive, between

Strength = Annotated[float, between(1e-3, 1e6)]


class AdviceRules(PolicySection):
    least_outcomes: Positive = 10
    strengths: tuple[Strength, ...] = (1.0, 3.0, 10.0, 30.0, 100.0)
    shown: Positive = 5
