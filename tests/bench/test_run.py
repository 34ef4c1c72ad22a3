"""From the words of a call to the libraries that it means. Nothing is compiled here."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench import run as verbs
from kernelgate.bench.build.library import Library, Manifest
from kernelgate.bench.errors import UsageError

REPO = Path("repo")
HEAD = record.Subject(head_sha="a" * 40)


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries that are named after what they were asked for."""

    def named(name: str) -> Library:
        return Library(Path(name), Manifest.model_construct(), cached=True)

    monkeypatch.setattr(verbs.git, "toplevel", lambda _: Path("top"))
    monkeypatch.setattr(verbs.git, "default_base", lambda _: "where-it-began")
    monkeypatch.setattr(verbs.build, "build_tree", lambda tree: named(f"tree {tree}"))
    monkeypatch.setattr(verbs.build, "build_commit", lambda repo, ref: named(f"commit {ref} of {repo}"))
    monkeypatch.setattr(verbs.libraries, "read", lambda folder: named(f"folder {folder}"))


def sides(
    base: str | None = None,
    base_folder: Path | None = None,
    head: str | None = None,
    head_folder: Path | None = None,
    alone: bool = False,
) -> tuple[str | None, str]:
    found = verbs.sides(REPO, base, base_folder, head, head_folder, alone)
    return (str(found.base.folder) if found.base else None, str(found.head.folder))


def test_without_words_the_tree_meets_the_commit_where_its_branch_began() -> None:
    assert sides() == ("commit where-it-began of repo", "tree top")


def test_each_side_can_be_named() -> None:
    assert sides(base="v1", head="v2") == ("commit v1 of repo", "commit v2 of repo")
    assert sides(base="v1", head_folder=Path("b")) == ("commit v1 of repo", "folder b")
    assert sides(base_folder=Path("a")) == ("folder a", "tree top")
    assert sides(base_folder=Path("a"), head_folder=Path("b")) == ("folder a", "folder b")


def test_a_head_can_be_alone() -> None:
    assert sides(alone=True) == (None, "tree top")
    assert sides(head_folder=Path("b"), alone=True) == (None, "folder b")


def test_words_that_contradict_each_other() -> None:
    with pytest.raises(UsageError, match="leave out --base"):
        sides(base="v1", alone=True)
    with pytest.raises(UsageError, match="leave out --base"):
        sides(base_folder=Path("a"), alone=True)
    with pytest.raises(UsageError, match="--head-library needs"):
        sides(head_folder=Path("b"))
    with pytest.raises(UsageError, match="not both"):
        sides(base="v1", base_folder=Path("a"))
    with pytest.raises(UsageError, match="not both"):
        sides(base="v0", head="v1", head_folder=Path("a"))


def test_fuzz_results_are_taken_over_from_a_record_of_the_same_head(tmp_path: Path) -> None:
    done = record.Fuzz(status="passed", seed=7)
    record.write(record.RunRecord(subject=HEAD, fuzz=done), tmp_path / "run.json")
    assert verbs.fuzz_results(tmp_path / "run.json", HEAD) == done


def test_fuzz_results_of_another_head_are_refused(tmp_path: Path) -> None:
    record.write(record.RunRecord(subject=record.Subject(head_sha="b" * 40)), tmp_path / "run.json")
    with pytest.raises(UsageError, match="is about commit bbbb"):
        verbs.fuzz_results(tmp_path / "run.json", HEAD)


def test_a_record_that_a_profile_begins_says_where_it_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = record.Environment(device=record.Device(name="NVIDIA L4", compute_capability="8.9"))
    monkeypatch.setattr(verbs.environment, "describe", lambda: here)
    monkeypatch.setattr(verbs.subject, "describe", lambda *_: HEAD)
    path, profile = tmp_path / "run.json", (record.Profile(case="a", side="head", metrics={"duration_us": 1.0}),)
    both = verbs.Sides(None, Library(Path("b"), Manifest.model_construct(), cached=True))
    verbs.put_into(path, both, profile=profile)
    begun = record.read(path)
    assert (begun.environment, begun.subject, begun.profile) == (here, HEAD, profile)
    monkeypatch.setattr(verbs.environment, "describe", lambda: pytest.fail("asked again"))
    verbs.put_into(path, both, profile=())
    assert record.read(path) == begun.model_copy(update={"profile": ()})
