"""The gates of a session in their order: what passes each, how long it may take, and what to do when it fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelgate.ci.lab.log import GateName, Template
from kernelgate.ci.policy.policy import Policy


@dataclass(frozen=True)
class Gate:
    """What a session asks of a machine and a kernel before it goes on."""

    name: GateName
    minutes: float
    passes: str
    on_failure: str


ORDER: Mapping[Template, tuple[GateName, ...]] = {
    "baseline": ("environment", "build", "correctness", "performance", "document"),
    "optimise": ("environment", "build", "correctness", "performance", "profile", "document"),
}


def of(template: Template, policy: Policy) -> tuple[Gate, ...]:
    """The gates of a session of this kind."""
    known = {gate.name: gate for gate in _all(template, policy)}
    return tuple(known[name] for name in ORDER[template])


def minutes(template: Template, policy: Policy) -> float:
    """How long such a session takes: the sum of its boxes."""
    return policy.session.baseline_minutes if template == "baseline" else policy.session.optimise_minutes


def _all(template: Template, policy: Policy) -> tuple[Gate, ...]:
    rules, guidance = policy.session, policy.guidance
    documents = rules.baseline_document_minutes if template == "baseline" else rules.document_minutes
    return (
        Gate(
            "environment",
            rules.environment_minutes,
            "kernelgate doctor calls the machine fit",
            "do what doctor says of each failed check; build nothing before",
        ),
        Gate(
            "build",
            rules.build_minutes,
            "the kernel compiles",
            f"read the first error; after {rules.bisect_after_minutes:g} minutes of failing, look for the last commit "
            "that compiles with `kernelgate bisect --build`",
        ),
        Gate(
            "correctness",
            rules.correctness_minutes,
            "every configuration agrees with the card's oracle, the small ones first",
            "repeat the smallest configuration that fails, with the command that it comes with",
        ),
        Gate(
            "performance",
            rules.performance_minutes,
            "kernel and reference are timed beside each other",
            "end what else runs on the device, and try again",
        ),
        Gate(
            "profile",
            rules.profile_minutes,
            f"a bottleneck is named; needed below {guidance.profile_below:g}x the reference",
            "see what the profiler said; without one, say so: `kernelgate session gate profile --skip REASON`",
        ),
        Gate("document", documents, "the report is written", "kernelgate session close"),
    )
