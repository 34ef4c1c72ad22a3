"""From the words of a call to the libraries that it means. Nothing is compiled here."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelgate.bench import record
from kernelgate.bench.build.library import Libraries, Library, Manifest, Sides
from kernelgate.bench.check import fuzz
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.commit import Compared, HowToBuild
from kernelgate.bench.measure import run as verbs

REPO = Path("repo")
HEAD = record.Run(head_sha="a" * 40)


def library(name: str = "x", **manifest: object) -> Library:
    return Library(Path(name), Manifest.model_construct(**manifest), cached=True)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries that are named after what they were asked for."""

    def named(name: str) -> Libraries:
        return Libraries({"attention": library(name)})

    def commit(repo: Path, ref: str, how: HowToBuild | None) -> Libraries:
        if ref.startswith("broken"):
            assert how is not None
            assert how.forgiving
            return Libraries({}, {"attention": "it does not compile"} if ref == "broken" else {})
        return named(f"commit {ref} of {repo}")

    monkeypatch.setattr(verbs.git, "toplevel", lambda _: Path("top"))
    monkeypatch.setattr(verbs.git, "default_base", lambda _: "where-it-began")
    monkeypatch.setattr(verbs.commit, "build_tree", lambda tree, _: named(f"tree {tree}"))
    monkeypatch.setattr(verbs.commit, "build_commit", commit)
    monkeypatch.setattr(verbs.built, "read_all", lambda folder: named(f"folder {folder}"))


def sides(**words: Any) -> tuple[str | None, str]:
    base, head = ((words.get(side), words.get(f"{side}_folder")) for side in ("base", "head"))
    found = verbs.sides(REPO, base, head, words.get("alone", False))["attention"]
    return (str(found.base.folder) if found.base else None, str(found.head.folder))


def test_each_side_can_be_named_and_the_tree_meets_the_commit_where_its_branch_began() -> None:
    assert sides() == ("commit where-it-began of repo", "tree top")
    assert sides(base="v1", head="v2") == ("commit v1 of repo", "commit v2 of repo")
    assert sides(base="v1", head_folder=Path("b")) == ("commit v1 of repo", "folder b")
    assert sides(base_folder=Path("a")) == ("folder a", "tree top")
    assert sides(base_folder=Path("a"), head_folder=Path("b")) == ("folder a", "folder b")
    assert sides(alone=True) == (None, "tree top")
    assert sides(head_folder=Path("b"), alone=True) == (None, "folder b")
    for base, why in (("broken", "it does not compile"), ("broken too", "the base commit has no card attention")):
        found = verbs.sides(REPO, (base, None), (None, None), alone=False)["attention"]
        assert (found.base, found.why_alone) == (None, why)
    words: dict[str, Any]
    for words, why in (
        ({"base_folder": Path("a"), "alone": True}, "leave out --base"),
        ({"head_folder": Path("b")}, "--head-library also needs"),
        ({"base": "v1", "base_folder": Path("a")}, "not both"),
    ):
        with pytest.raises(UsageError, match=why):
            sides(**words)


@pytest.mark.parametrize(
    ("pinned", "why"),
    [
        (Libraries({}), "the pinned commit has no card attention"),
        (Libraries({}, {"attention": "it does not compile"}), "it does not compile"),
        (("a",), "both register their operators as torch.ops.a"),
        (("b",), None),
    ],
)
def test_a_pinned_commit_that_cannot_be_beside_the_head_leaves_it_alone_and_says_why(
    pinned: Libraries | tuple[str], why: str | None
) -> None:
    def made(namespace: str, sha: str | None = "a" * 40) -> Library:
        return library(namespace, sha=sha, namespace=namespace, kind="extension", key=sha, sha256=sha)

    libraries = pinned if isinstance(pinned, Libraries) else Libraries({"attention": made(*pinned)})
    found = verbs.beside({"attention": Sides(None, made("a", "c" * 40))}, libraries)["attention"]
    assert (found.why_alone, found.pinned is None) == (why, why is not None)
    with pytest.raises(UsageError, match="does not say of which commit"):
        verbs.beside({}, Libraries({"attention": made("b", None)}))


def test_commands_that_repeat_a_failure_are_about_the_same_commit_and_cards() -> None:
    about = Compared(CardFacts.model_construct(name="norm"), Sides(None, library()), None)
    (one,) = verbs.repeatable([about], "a1b2c3d", Path("/my cards"))
    trial: Any = SimpleNamespace(run_seed=7, id="m1")
    said = "kernelgate fuzz --seed 7 --case norm/m1"
    assert fuzz.repeat(one.card, trial) == f"{said} --ref a1b2c3d --cards '/my cards'"
    (one,) = verbs.repeatable([about], None, None)
    assert fuzz.repeat(one.card, trial) == said


def test_fuzz_results_are_taken_over_from_a_record_of_the_same_head(tmp_path: Path) -> None:
    done = record.Check(kind="fuzz", status="passed", seed=7)
    record.write(record.RunRecord(run=HEAD, checks=(done,)), tmp_path / "run.json")
    assert verbs.fuzz_results(tmp_path / "run.json", HEAD) == ((done,), ())
    with pytest.raises(UsageError, match="is about commit aaaa"):
        verbs.fuzz_results(tmp_path / "run.json", record.Run(head_sha="b" * 40))


def test_a_record_that_a_profile_begins_says_where_it_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = record.Environment(device=record.Device(name="NVIDIA L4", compute_capability="8.9"))
    monkeypatch.setattr(verbs.environment, "describe", lambda: here)
    monkeypatch.setattr(verbs, "run_identity", lambda *_: HEAD)
    path, profile = tmp_path / "run.json", (record.Profile(case="a", side="head", metrics={"duration_us": 1.0}),)
    both = {"attention": Sides(None, library())}
    files.write_each(verbs.added(path, both, lambda _: {"profile": profile}))
    begun = record.read(path)
    assert (begun.environment, begun.run, begun.profile) == (here, HEAD, profile)
    monkeypatch.setattr(verbs.environment, "describe", lambda: pytest.fail("asked again"))
    files.write_each(verbs.added(path, both, lambda old: {"profile": old.profile[1:]}))
    assert record.read(path) == begun.model_copy(update={"profile": ()})


KERNEL = record.KernelFacts(target="sm_89", name="attention", registers=242)


def analysed(sha256: str, *kernels: record.KernelFacts, missing: str | None = None) -> Library:
    known = {"card": "attention", "targets": ("sm_89",), "sha": None, "key": "k", "card_sha256": None, "seconds": 1.0}
    return library(**known, sha256=sha256, kernels=kernels, facts_missing=missing, warnings=None)


def test_the_kernels_go_into_the_builds_of_a_record_that_has_no_other_library() -> None:
    with pytest.raises(KernelgateError, match=r"^the registers and instructions of head are unknown: no memory$"):
        verbs.builds({"attention": Sides(analysed("1"), analysed("2", missing="no memory"))})
    new = verbs.builds({"attention": Sides(analysed("1"), analysed("2", KERNEL))})
    assert verbs.with_builds((), new) == new
    timed = record.Build(card="attention", side="head", sha="a" * 40, library_sha256="2", seconds=9.0)
    old = record.Build(side="base")  # no card, no hash
    assert verbs.with_builds((old, timed), new) == (old, timed.model_copy(update={"kernels": (KERNEL,)}))
    with pytest.raises(UsageError, match="another library of the head"):
        verbs.with_builds((timed.model_copy(update={"library_sha256": "1"}),), new)


def test_a_run_says_who_made_it_of_what_and_has_an_id_of_its_own() -> None:
    variables = {"GITHUB_REPOSITORY": "a/b", "GITHUB_RUN_ID": "12", "GITHUB_RUN_ATTEMPT": "3"}
    refs = {"refs/pull/12/merge": 12, "refs/pull/12/head": 12, "refs/heads/refs/pull/1/x": None}
    head = library(sha="b" * 40)
    made = [verbs.run_identity(None, head, {**variables, "GITHUB_REF": ref}) for ref in refs]
    assert [one.pull_request for one in made] == [*refs.values()]
    assert {(one.head_sha, one.repository, one.run_id, one.run_attempt) for one in made} == {("b" * 40, "a/b", 12, 3)}
    assert len({one.id for one in made}) == 3
