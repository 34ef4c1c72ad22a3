"""How much of the device an agent has used, and how much it has left. Plain data; the server keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelgate.ci.lab.agent_tools import ToolRefusedError
from kernelgate.ci.policy.agent_rules import AgentRules


@dataclass(frozen=True)
class DeviceBudget:
    """Seconds during which verbs that measure had the device: on a machine without a GPU, the CPU."""

    rules: AgentRules
    spent: Mapping[str, float] = field(default_factory=dict)
    """By session; "" where none is open."""

    @property
    def spent_s(self) -> float:
        return sum(self.spent.values())

    def left_s(self, session: str) -> float:
        """Of the server's budget and of the session's, the less."""
        whole = self.rules.gpu_seconds - self.spent_s
        return max(0.0, min(whole, self.rules.session_gpu_seconds - self.spent.get(session, 0.0)))

    def limit_s(self, session: str, measures: bool) -> float:
        """How long a call may take. Raises ToolRefusedError where nothing is left to measure with."""
        if not measures:
            return self.rules.wall_s
        left = self.left_s(session)
        if left <= 0:
            said = f"{self.spent_s:.0f} of {self.rules.gpu_seconds:g} GPU-seconds are spent"
            here = f", {self.spent.get(session, 0.0):.0f} of {self.rules.session_gpu_seconds:g} in this session"
            raise ToolRefusedError(f"the budget is used up: {said}{here}; a person may raise [agents] and start anew")
        return min(left, self.rules.wall_s)

    def charged(self, session: str, seconds: float) -> DeviceBudget:
        return DeviceBudget(self.rules, {**self.spent, session: self.spent.get(session, 0.0) + seconds})
