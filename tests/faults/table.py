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
        Tried(
            "a record with one field broken, or one that contradicts itself",
            "refused in one sentence that names the place, exit 3",
            "faults/test_records.py::test_a_broken_record_is_refused_in_one_sentence",
            (
                "a sample in quotes",
                "a sample that is true",
                "a sample that is null",
                "a sample that is a list",
                "a sample of 0",
                "a negative sample",
                "a sample of 1e300",
                "a denormal sample",
                "samples that are a number",
                "samples that are a text",
                "a side more than there is",
                "sides of different lengths",
                "positions of another length",
                "a count in quotes",
                "a count that is true",
                "a count with a fraction",
                "a negative count",
                "a count of 65 bits",
                "a seed in quotes",
                "an error in quotes",
                "a negative error",
                "passed in quotes",
                "passed as a number",
                "passed, and a result failed",
                "passed, and failures counted",
                "skipped, and a result failed",
                "passed beyond its limit",
                "fewer results than ran",
                "a check of another kind",
                "another status",
                "a capability of other digits",
                "a capability without a point",
                "a capability that is a number",
                "memory in quotes",
                "an axis of 1e300",
                "work below zero",
                "a case without an id",
                "a case twice",
                "a process twice",
                "a time of no case",
                "a case twice in one process",
                "another role",
                "an unknown key",
                "an unknown schema",
                "cases that are a text",
                "a run that is a list",
            ),
        ),
        Tried(
            "a file that is no record, or only a part of one",
            "refused in one sentence, exit 3",
            "faults/test_records.py::test_a_torn_record_is_refused_in_one_sentence",
            (
                "empty",
                "cut short",
                "no JSON",
                "a list",
                "null",
                "not UTF-8",
                "5,000 brackets",
                "NaN",
                "1e999",
                "two records in one",
            ),
        ),
        Tried(
            "a record that cannot be read",
            "named, exit 3",
            "bench/test_record.py::test_a_file_that_cannot_be_read_is_named",
        ),
        Tried(
            "a record of the old schema that is broken",
            "refused by name",
            "bench/test_record.py::test_a_broken_record_of_run_1_is_refused_by_name",
        ),
        Tried(
            "a write that fails half-way",
            "the old file stays whole",
            "bench/test_record.py::test_a_failed_write_leaves_the_old_file_whole",
        ),
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
