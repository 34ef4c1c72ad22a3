"""Every attack that was tried, what must come of it, and its test. docs/security.md is written from it."""

from __future__ import annotations

from tests.tried import Group, Tried

WITHOUT_FORGING = Group(
    "What a person can do without forging anything",
    (
        # without_forging
    ),
)

TEXT = Group(
    "Text: in records, branches, commits and descriptions",
    (
        # text
    ),
)

ARCHIVES = Group(
    "Archives and JSON",
    (
        # archives
    ),
)

IDENTITY = Group(
    "Identity: of which run, commit and pull request",
    (
        # identity
        Tried(
            "a record of another pull request, head, base, repository, run or of a later attempt",
            "refused",
            "ci/github/test_untrusted_artifact.py::test_a_record_of_something_else_is_refused",
        ),
    ),
)

COMPLETENESS = Group(
    "A record that says less, or something else, than was planned",
    (
        # completeness
    ),
)

EVIDENCE = Group(
    "Forged measurements",
    (
        # evidence
    ),
)

RESOURCES = Group(
    "A record that stops the report or makes it slow",
    (
        # resources
    ),
)

COMMANDS = Group(
    "Commands, approvals and events",
    (
        # commands
    ),
)

BUILD = Group(
    "The build",
    (
        # build
    ),
)

BASELINE = Group(
    "The baseline's offer",
    (
        # baseline
    ),
)

NATIVE = Group(
    "Code of the kernel that runs on the runner",
    (
        # native
    ),
)

WORKFLOWS = Group(
    "The workflows and what they install",
    (
        # workflows
    ),
)

ATTACKS = (
    WITHOUT_FORGING,
    TEXT,
    ARCHIVES,
    IDENTITY,
    COMPLETENESS,
    EVIDENCE,
    RESOURCES,
    COMMANDS,
    BUILD,
    BASELINE,
    NATIVE,
    WORKFLOWS,
)
