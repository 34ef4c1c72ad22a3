"""The folder that is carried from the machine that compiles to the one that measures."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelgate.bench.build import build, library
from kernelgate.bench.build import cache as build_cache
from kernelgate.bench.build.library import LIBRARY, MANIFEST, SOURCES, Library, LibraryAt, Manifest
from kernelgate.bench.core.errors import KernelgateError
from tests.miniature import write

pytestmark = pytest.mark.usefixtures("cache")


def made(folder: Path, card: str = "gemm", contents: str = "machine code", card_text: str = "# card") -> Library:
    """An exported library that nobody compiled."""
    name = f"{card}.py"
    write(folder, {LIBRARY: contents})
    file = write(folder.parent / f"cards of {folder.name}", {name: card_text}) / name
    digest = hashlib.sha256(contents.encode()).hexdigest()
    about = {"card": card, "namespace": f"{card}_1", "sha": "1" * 40, "targets": ("sm_89",), "seconds": 1.5}
    manifest = Manifest(**about, key=digest[:32], sha256=digest, kernels=())
    return build.export(build.with_card(Library(folder, manifest, cached=False), file), folder / "exported" / card)


@pytest.fixture
def exported(tmp_path: Path) -> Library:
    return made(tmp_path)


@pytest.mark.parametrize("name", [LIBRARY, "card/gemm.py"])
def test_a_file_that_was_changed_is_refused(exported: Library, name: str) -> None:
    (exported.folder / name).write_text("other", encoding="utf-8")
    with pytest.raises(KernelgateError, match=rf"{name} is not the one that library\.json describes; build it again"):
        library.read(exported.folder)


def test_an_export_carries_the_sources_it_was_made_of_and_none_of_another(tmp_path: Path) -> None:
    old, new = made(tmp_path / "old", "norm"), made(tmp_path / "new", "norm", contents="other code")
    write(old.folder / SOURCES, {"csrc/a.cu": "old", "csrc/gone.cu": "gone"})
    write(new.folder / SOURCES, {"csrc/a.cu": "new"})
    there = build.export(new, build.export(old, tmp_path / "there").folder)
    again = build.export(there, there.folder)  # over itself, too
    held = library.sources_in(again)
    assert [(path.name, path.read_text(encoding="utf-8")) for path in held.rglob("*.cu")] == [("a.cu", "new")]


def test_a_worker_process_reads_the_card_of_the_cache(tmp_path: Path, exported: Library) -> None:
    """What the cache holds knows no card: it is named beside it."""
    bare = exported.manifest.model_copy(update={"card_sha256": None})
    build_cache.write_manifest(bare, exported.folder)
    entry = library.read(exported.folder)
    assert entry.card is None
    card = write(tmp_path, {"gemm.py": "# in the tree"}) / "gemm.py"
    at = LibraryAt.of(build.with_card(entry, card))
    assert at.read().card == at.card != card
    assert at.card.read_text(encoding="utf-8") == "# in the tree"


def test_libraries_are_the_same_where_sources_recipe_and_card_are(tmp_path: Path, exported: Library) -> None:
    moved = made(tmp_path / "moved")
    assert moved.same_as(exported)
    assert not made(tmp_path / "code", contents="other code").same_as(exported)
    assert not made(tmp_path / "card", card_text="# other card").same_as(exported)


def pinned(folder: Path, digest: str) -> Path:
    return Path(f"{folder}{library.PIN}{digest}")


TAMPERED = {
    "another library": lambda one: build.export(made(one.folder.parents[1] / "other", contents="slower"), one.folder),
    "another card": lambda one: (one.folder / "card/gemm.py").write_text("# other"),
    "a file beside it": lambda one: (one.folder / "card/helper.py").write_text("import os"),
    "a second library": lambda one: made(one.folder.parents[1] / "second", "softmax").folder.rename(
        one.folder.parent / "softmax"
    ),
    "a file that is gone": lambda one: (one.folder / MANIFEST).unlink(),
    "bytecode": lambda one: write(one.folder, {"package/__pycache__/gemm.cpython-311.pyc": "code"}),
}


@pytest.mark.parametrize("tamper", TAMPERED.values(), ids=TAMPERED)
def test_a_folder_that_was_changed_after_it_was_built_is_refused(
    tamper: Callable[[Library], object], exported: Library
) -> None:
    folder = exported.folder.parent
    digest = library.folder_digest(folder)
    tamper(exported)
    with pytest.raises(KernelgateError, match=r"is not what was built: .* nothing of it was loaded"):
        library.read_all(pinned(folder, digest))


def test_a_digest_that_nobody_gave_is_refused(exported: Library) -> None:
    """As where a workflow's job has no such output."""
    with pytest.raises(KernelgateError, match="not one that was given"):
        library.read_all(pinned(exported.folder.parent, ""))
