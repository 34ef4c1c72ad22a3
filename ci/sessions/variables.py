"""What a patch varies, as far as a program can see it: kernels, and the kinds of constants and flags that it changes.

A person may vary two things in one line of code, and no program sees that: what this finds is a warning, no proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

_KINDS = (
    ("launch bounds", re.compile(r"__launch_bounds__|maxrregcount|minBlocks|min_blocks", re.IGNORECASE)),
    ("unroll", re.compile(r"#\s*pragma\s+(?:GCC\s+)?unroll|unroll", re.IGNORECASE)),
    ("stages", re.compile(r"(?<![a-z])k?(?:num_?)?stages?\b", re.IGNORECASE)),
    ("threads", re.compile(r"(?<![a-z])k?(?:num_?)?(?:warps?|threads?|block_?dim)\w*", re.IGNORECASE)),
    ("tile", re.compile(r"(?<![a-z])k?(?:block|tile)_?[a-z]?\b|k(?:Block|Tile)\w*|kRows|kColumns|BLOCK_\w+")),
    ("vector width", re.compile(r"float[24]\b|half2|uint4|vector_size|(?<![a-z])k?(?:vec|width)\w*", re.IGNORECASE)),
    ("swizzle", re.compile("swizzle", re.IGNORECASE)),
    ("fast maths", re.compile(r"__expf|ex2\.approx|fast_math|__fdividef", re.IGNORECASE)),
    ("flags", re.compile(r"""["'](?:-O[0-3s]|-f[a-z-]+|-m[a-z0-9=-]+|-Xptxas\S*|--?[a-z][\w=-]*)["']|flags\s*=""")),
)
CODE = "code"
KERNEL = "kernel "
_SET = re.compile(r"\b(\w+)\s*(?:=|\{)\s*(-?\d[\w.]*(?:\s*<<\s*\d+)?)")
_SOURCES = {".cu", ".cuh", ".cpp", ".cc", ".h", ".hpp", ".py"}


def of(patch: str) -> tuple[str, ...]:
    """Names of what a patch varies; "code" for lines of none of the kinds, and "kernel <folder>" where it changes
    sources in several folders."""
    kinds: dict[str, None] = {}
    folders: dict[str, None] = {}
    for path, removed, added in _files(patch):
        source = PurePosixPath(path)
        if source.suffix in _SOURCES and ".ci" not in source.parts:
            folders[str(source.parent)] = None
        for kind in _of_lines(removed, added):
            kinds[kind] = None
    several_folders = [f"{KERNEL}{name}" for name in folders] if len(folders) > 1 else []
    return (*kinds, *several_folders)


def several(variables: Sequence[str]) -> bool:
    """Whether more than one thing is varied; other code is taken to belong to the one that has a name."""
    kernels = [name for name in variables if name.startswith(KERNEL)]
    kinds = [name for name in variables if name != CODE and not name.startswith(KERNEL)]
    return len(kinds) > 1 or len(kernels) > 1


def warning(variables: Sequence[str]) -> str | None:
    """What is to be said of a change of several things; None of a change of one."""
    if not several(variables):
        return None
    kernels = [name.removeprefix(KERNEL) for name in variables if name.startswith(KERNEL)]
    kinds = [name for name in variables if name != CODE and not name.startswith(KERNEL)]
    parts = [*(kinds if len(kinds) > 1 else []), *([f"sources in {' and '.join(kernels)}"] if len(kernels) > 1 else [])]
    return f"more than one thing changed at once: {', '.join(parts)}; what made the difference cannot be told"


def _files(patch: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Path, removed and added lines of each file."""
    for part in re.split(r"^diff --git ", patch, flags=re.MULTILINE)[1:]:
        header, _, body = part.partition("\n@@")
        named = re.search(r"^\+\+\+ b/(.*)$", header, re.MULTILINE) or re.search(r"^--- a/(.*)$", header, re.MULTILINE)
        path = named[1] if named else part.split(" ", 1)[0].removeprefix("a/")
        lines = body.split("\n")
        yield (
            path.rstrip("\t"),
            [line[1:] for line in lines if line.startswith("-")],
            [line[1:] for line in lines if line.startswith("+")],
        )


def _of_lines(removed: Sequence[str], added: Sequence[str]) -> Iterator[str]:
    """The kinds of what differs. Of lines that set a number, only names whose number changed count."""
    before, after = _numbers(removed), _numbers(added)
    moved = {name for name in before.keys() & after.keys() if before[name] != after[name]}
    for line in (*removed, *added):
        text = line.split("//")[0].strip()
        if not text or text.startswith(("*", "/*")):
            continue
        names = [name for name, _ in _SET.findall(text)]
        if names and not moved.intersection(names) and set(names) <= before.keys() & after.keys():
            continue
        about = " ".join(name for name in names if name in moved) or text
        found = [kind for kind, pattern in _KINDS if pattern.search(about)]
        yield from found or [CODE]


def _numbers(lines: Sequence[str]) -> dict[str, str]:
    return {name: value for line in lines for name, value in _SET.findall(line.split("//")[0])}
