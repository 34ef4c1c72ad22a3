"""The policy's rules for pull requests: what a description must hold, what is measured, and where."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StrictBool, model_validator

from kernelgate.ci.policy.bounds import PolicySection


class Template(PolicySection):
    """What a pull request's description must hold, and how its claims are held against the measurement."""

    kernel_paths: Annotated[tuple[str, ...], Field(min_length=1)] = ("csrc/",)
    block_empty_hypothesis: StrictBool = True
    block_contradicted_claim: StrictBool = True


class RunnerGpu(PolicySection):
    """One kind of runner that measures pull requests: a column of the comment."""

    label: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,30}$")]
    """Of its runners, beside self-hosted, linux, x64 and gpu."""
    target: Annotated[str, Field(pattern=r"^[0-9]{1,2}\.[0-9]$")]
    """Its compute capability: what the libraries are compiled for."""
    baseline: str | None = None
    """The baseline file of this GPU, from the root of the repository."""


L4 = RunnerGpu(label="l4", target="8.9", baseline=".ci/baseline_s512.json")


class Measure(PolicySection):
    """What is measured, where, and when not."""

    paths: Annotated[tuple[str, ...], Field(min_length=1)] = (
        "csrc/",
        "bench/",
        "setup.py",
        ".ci/",
        ".github/workflows/",
    )
    skip_labels: tuple[str, ...] = ("documentation", "skip-performance")
    pinned: Annotated[str, Field(pattern=r"^([0-9a-f]{40})?$")] = ""
    """The commit of the default branch that each night times beside its head; empty: the head alone."""
    gpus: Annotated[tuple[RunnerGpu, ...], Field(min_length=1, max_length=15)] = (L4,)

    @model_validator(mode="after")
    def _labels_are_unique(self) -> Self:
        labels = [gpu.label for gpu in self.gpus]
        if len(set(labels)) < len(labels):
            raise ValueError(f"duplicate GPU label; got {', '.join(labels)}")
        return self
