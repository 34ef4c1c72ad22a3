"""The policy's limits for coding agents; ci/agents applies them."""

from __future__ import annotations

from typing import Annotated

from kernelgate.ci.policy.bounds import PolicySection, between


class AgentRules(PolicySection):
    """What an agent may take of a machine through `kernelgate mcp`, and cannot exceed."""

    gpu_seconds: Annotated[float, between(0.0, 1e7)] = 7200.0
    session_gpu_seconds: Annotated[float, between(0.0, 1e7)] = 3600.0
    wall_s: Annotated[float, between(0.1, 86_400.0)] = 1800.0
    output_bytes: Annotated[int, between(1000, 10_000_000)] = 200_000
