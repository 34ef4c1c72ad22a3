"""What a patch varies, as far as a program can see it: kernels, and settings, such as a tile, whose numbers change.

A number is taken for that of the nearest setting before it in its line. A person may vary two things by one number,
and one thing by two: what this finds is a warning, no proof.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

CODE = "code"
KERNEL = "kernel "

_SETTINGS = {
    "launch bounds": r"launch_?bounds|max_?r?reg_?count|min_?blocks|blocks_?per_?sm|maxnreg",
    "grid": r"grid(dim)?|(num_?)?blocks|programs",
    "stages": r"(num_?)?stages?",
    "threads": r"(num_?|max_?)?(thread|warp|warpgroup)s?(_?per_?block|_?[mn])?|block_?(dim|size|threads)|consumers?",
    "tile": r"\w*tile\w*|block(_?([a-z]|rows|columns|keys|queries))?|b[mnk]|rows|columns|step",
    "vector width": r"vec(tor)?(_?(width|size))?|width|(bytes|elements|values)_?per_?(load|thread|lane)",
    "unroll": r"unroll(ed)?",
}
"""Names of constants and types, without the `k` before a constant's, in lower case; the first that fits whole is it."""
_LOCAL = re.compile(
    r"_*launch_bounds_*|(block|grid)Dim|(num_?)?(threads|warps|stages|blocks|grid)|block(_size|_[mnk])?"
)
"""Names of settings that are no constants. Others of the kind, such as rows, are as often what a loop counts."""
_CONSTANT = re.compile(r"k?[A-Z]\w*")
_OWN = re.compile(r"k[A-Z]\w*|[A-Z][A-Z0-9_]+")
"""A constant's name, which is a setting of its own where it is none of those."""
_HOLDER = re.compile(r"""([A-Za-z_]\w*)["']?\s*(?:[=({<[]|:(?!:))|#\s*pragma\s+(unroll)|#\s*define\s+(\w+)""")
"""What a number behind it may belong to."""
_LAUNCH = re.compile(r"<<<([^>,]*,)?[^>,]*$")
_NUMBER = re.compile(r"(?<![\w.])\d[\w.']*")
_SOURCES = {".cu", ".cuh", ".cpp", ".cc", ".c", ".h", ".hpp", ".inl", ".py"}

_Varied = tuple[str, str]
"""The kind of a setting, or a constant's name where it has none; and whose number was removed or added, with it."""


def of(patch: str, cards: Mapping[str, Sequence[str]] | None = None) -> tuple[str, ...]:
    """Names of what a patch varies; "code" for anything else, and "kernel <name>" where it changes several. `cards`:
    the beginnings of each card's sources. Kernels are those of several cards, else of several folders."""
    numbers = {"-": Counter[_Varied](), "+": Counter[_Varied]()}
    code, paths = {"-": Counter[str](), "+": Counter[str]()}, list[str]()
    for path, lines in _files(patch):
        read = [(line[0], *_read(line[1:], path)) for line in lines]
        for sign, rest, settings in read:
            numbers[sign].update(settings)
            code[sign].update([rest] if rest else [])
        is_source = PurePosixPath(path).suffix in _SOURCES and ".ci" not in PurePosixPath(path).parts
        paths += [path] if is_source and any(rest for _, rest, _ in read) else []
    # What stands elsewhere now is no change of it.
    old, new = numbers["-"] - numbers["+"], numbers["+"] - numbers["-"]
    kinds = dict.fromkeys(kind for kind, _ in (*old, *new))
    # A constant of no kind that is new belongs to the code that it came with.
    both = {kind for kind, _ in old} & {kind for kind, _ in new}
    known = [kind for kind in kinds if kind in _SETTINGS or kind in both]
    return (*known, *([CODE] if code["-"] != code["+"] else []), *_kernels(paths, cards or {}))


def warning(variables: Sequence[str]) -> str | None:
    """What is to be said of a change of several things; None of a change of one. Other code is taken to belong to the
    one that has a name."""
    kernels = [name.removeprefix(KERNEL) for name in variables if name.startswith(KERNEL)]
    kinds = [name for name in variables if name != CODE and not name.startswith(KERNEL)]
    parts = kinds if len(kinds) > 1 else []
    parts += [f"sources of {' and '.join(kernels)}"] if len(kernels) > 1 else []
    several = f"more than one thing changed at once: {', '.join(parts)}; what made the difference cannot be told"
    return several if parts else None


def _kernels(paths: Sequence[str], cards: Mapping[str, Sequence[str]]) -> list[str]:
    owners = [[name for name, begins in cards.items() if path.startswith(tuple(begins))] for path in paths]
    names = dict.fromkeys(own[0] for own in owners if len(own) == 1)
    if len(names) < 2:  # a folder within another is the same kernel
        folders = dict.fromkeys(PurePosixPath(path).parent for path in paths)
        names = dict.fromkeys(str(one) for one in folders if not folders.keys() & set(one.parents))
    return [f"{KERNEL}{name}" for name in names] if len(names) > 1 else []


def _files(patch: str) -> Iterator[tuple[str, list[str]]]:
    """Path of each file, and its removed and added lines."""
    for part in re.split(r"^--- (?=(?:a/|/dev/null)[^\n]*\n\+\+\+ )", patch, flags=re.MULTILINE)[1:]:
        before, after, *body = part.split("\n")
        path = (before if after.startswith("+++ /dev/null") else after.removeprefix("+++ ")).rstrip("\t")
        yield path.removeprefix("a/").removeprefix("b/"), [line for line in body if line.startswith(("-", "+"))]


def _read(line: str, path: str) -> tuple[str, list[_Varied]]:
    """The code of a line, without comment, layout and the numbers of settings; and these."""
    comment = r"(?:^|\s)#.*" if path.endswith(".py") else r"//.*|/\*.*?(?:\*/|$)|^\s*\*(?:\s.*|/.*)?$"
    text, found = re.sub(comment, "", line), list[_Varied]()

    def read(number: re.Match[str]) -> str:
        kind, holder = _setting(text[: number.start()])
        found.extend([(kind, f"{holder} {number[0]}")] if kind else [])
        return "" if kind else number[0]

    return "".join(_NUMBER.sub(read, text).split()), found


def _setting(before: str) -> tuple[str, str]:
    """The kind of what a number with this before it in its line belongs to, and its name; no kind: it is code."""
    if launch := _LAUNCH.search(before):
        return ("threads" if launch[1] else "grid"), ""
    for holder in reversed([next(filter(None, groups)) for groups in _HOLDER.findall(before)]):
        small = holder.removeprefix("k").strip("_").lower()
        if _CONSTANT.fullmatch(holder) or _LOCAL.fullmatch(holder) or holder == "unroll":
            kind = next((kind for kind, names in _SETTINGS.items() if re.fullmatch(names, small)), None)
            if kind or _OWN.fullmatch(holder):
                return kind or holder, holder
    return "", ""
