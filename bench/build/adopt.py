"""Puts a library that was compiled elsewhere into the cache: found by its key, as if it had been compiled here."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from kernelgate.bench.build import build
from kernelgate.bench.build.library import CACHE, LIBRARY, PACKAGE, Library
from kernelgate.bench.core.errors import KernelgateError

KEY = re.compile(r"[0-9a-f]{32}")
"""Of sources, recipe and compilers: also the name of a folder."""


def adopt(given: Library) -> Library:
    """The cache's entry for the library's key: what it has already, else a copy of this one.

    `given` must be from somebody who is trusted to have compiled it from what its key stands for. Raises
    KernelgateError where its key is none.
    """
    if not KEY.fullmatch(given.manifest.key):
        raise KernelgateError(f"{given.folder} has no key that a cache could find it by")
    return build.cached(given.manifest.key, lambda entry: _copied(given, entry))


def _copied(given: Library, entry: Path) -> Library:
    """The caller holds the entry's lock."""
    work = build.work_folder(entry)
    shutil.rmtree(work, ignore_errors=True)  # of a run that was killed
    parts = (LIBRARY,) if given.manifest.kind == "extension" else (PACKAGE, CACHE)
    manifest = given.manifest.model_copy(update={"sha": None, "card_sha256": None})  # the cache knows contents alone
    try:
        work.mkdir(parents=True)
        for part in parts:
            source = given.folder / part
            if source.is_file():
                shutil.copyfile(source, work / part)
            elif source.is_dir():
                shutil.copytree(source, work / part)
            else:  # an empty folder is carried by nobody
                (work / part).mkdir()
        build.put_in_place(manifest, work, entry, parts)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return Library(entry, manifest, cached=True)
