"""Puts the commit's own lines to where samples were taken.

A line table may name any file of any machine: it is only looked up among the files that the library was made of, and
none of another name is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from posixpath import normpath

from kernelgate.bench.build import package
from kernelgate.bench.build.compiler_errors import HERE
from kernelgate.bench.build.library import Library, sources_in
from kernelgate.bench.record import MAX_HOT_TEXT, HotSpots


def quoted(found: HotSpots, library: Library) -> HotSpots:
    """The same with files as the commit names them, and the text of its lines; of any other file its name alone."""
    own = dict(_own_files(library))
    texts: dict[str, list[str]] = {}

    def text(path: str, number: int) -> str | None:
        if path not in texts:
            texts[path] = own[path].read_text(encoding="utf-8", errors="replace").splitlines()
        held = texts[path]
        return held[number - 1].strip()[:MAX_HOT_TEXT] if number <= len(held) else None

    lines = tuple(
        one.model_copy(update={"file": path or _name(one.file), "text": text(path, one.line) if path else None})
        for one in found.lines
        for path in (_commit_path(one.file, library, own),)
    )
    instructions = tuple(
        one.model_copy(update={"file": one.file and (_commit_path(one.file, library, own) or _name(one.file))})
        for one in found.instructions
    )
    return found.model_copy(update={"lines": lines, "instructions": instructions})


def _own_files(library: Library) -> Iterator[tuple[str, Path]]:
    """What the library was made of: path of the commit (of a package, below the folder that it is imported from) and
    where a copy is."""
    folder = sources_in(library)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path.relative_to(folder).as_posix(), path


def _commit_path(file: str, library: Library, own: Mapping[str, Path]) -> str | None:
    """What a line table calls a file of the commit. A package's may also be compiled where it is called."""
    is_package = library.manifest.kind == "package"
    places = (f"{package.SOURCES}/", f"{library.path.resolve()}/") if is_package else (HERE,)
    prefix = next((place for place in places if file.startswith(place)), None)
    path = normpath(file.removeprefix(prefix)) if prefix else None
    return path if path in own else None


def _name(file: str) -> str:
    return PurePosixPath(file).name or file
