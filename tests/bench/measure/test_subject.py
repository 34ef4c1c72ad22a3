"""What a record says it is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.build.library import Library, Manifest
from kernelgate.bench.measure import run


def library(sha: str | None) -> Library:
    return Library(Path("x"), Manifest.model_construct(sha=sha), cached=True)


def test_a_run_in_a_workflow() -> None:
    variables = {"GITHUB_REPOSITORY": "a/b", "GITHUB_RUN_ID": "12", "GITHUB_RUN_ATTEMPT": "3"}
    found = run.run_identity(None, library("b" * 40), variables)
    assert (found.base_sha, found.repository, found.run_id, found.run_attempt) == (None, "a/b", 12, 3)


@pytest.mark.parametrize(
    ("ref", "number"),
    [
        ("refs/pull/12/merge", 12),
        ("refs/pull/12/head", 12),
        ("refs/heads/12", None),
        ("refs/heads/refs/pull/1/x", None),
    ],
)
def test_the_pull_request_is_the_one_of_the_ref(ref: str, number: int | None) -> None:
    assert run.run_identity(None, library(None), {"GITHUB_REF": ref}).pull_request == number


def test_a_record_says_who_made_it_and_has_an_id_of_its_own() -> None:
    one, other = (run.run_identity(None, library(None), {"GITHUB_EVENT_NAME": "push"}) for _ in range(2))
    assert (one.producer, one.event) == ("kernelgate", "push")
    assert one.id
    assert one.id != other.id
