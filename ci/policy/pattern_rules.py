"""The policy's rules for patterns; ci/patterns applies them."""

from __future__ import annotations

from typing import Annotated

from kernelgate.ci.policy.bounds import PolicySection, between


class PatternRules(PolicySection):
    """From where on a new pattern is proposed, and one that there is applies."""

    repeats: Annotated[int, between(2, 100)] = 2
    repeat_minutes: Annotated[float, between(0.0, 10_000.0)] = 5.0
    shared_words: Annotated[float, between(0.01, 1.0)] = 0.6
    silent_s: Annotated[float, between(1.0, 86_400.0)] = 120.0
