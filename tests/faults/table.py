"""Every fault that was tried, what must come of it, and its test. docs/reliability.md is written from it."""

from __future__ import annotations

from tests.tried import Group, Tried

SIGNALS = Group(
    "Signals and processes",
    (
        # signals
    ),
)

FILES = Group(
    "Disks, files and outputs",
    (
        # files
        Tried(
            "a result written to a full device",
            "74 and one sentence",
            "ci/test_exit_codes.py::test_a_full_disk_is_no_regression",
        ),
    ),
)

REPOSITORIES = Group(
    "Repositories",
    (
        # repositories
    ),
)

TOOLS = Group(
    "Compilers and other tools",
    (
        # tools
    ),
)

KERNELS = Group(
    "Kernels",
    (
        # kernels
    ),
)

RECORDS = Group(
    "Records, baselines and policies",
    (
        # records
    ),
)

ENVIRONMENT = Group(
    "The environment",
    (
        # environment
    ),
)

GITHUB = Group(
    "GitHub",
    (
        # github
    ),
)

FAULTS = (
    SIGNALS,
    FILES,
    REPOSITORIES,
    TOOLS,
    KERNELS,
    RECORDS,
    ENVIRONMENT,
    GITHUB,
)
