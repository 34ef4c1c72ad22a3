"""What a patch varies, as far as a program can see it: kernels, and the settings and kinds of code that it changes.

Removed and added lines are compared token by token, so that what merely stands in a changed line does not count. A
person may vary two things in one token, and one thing in two: what this finds is a warning, no proof.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import PurePosixPath

CODE = "code"
KERNEL = "kernel "

_SETTINGS = (
    ("launch bounds", r"launch_bounds|max_?r?reg_?count|min_?blocks|blocks_?per_?sm|maxnreg|waves_per_eu"),
    ("grid", r"grid(dim)?|blocks|num_?blocks|programs"),
    ("stages", r"(num_?)?stages?"),
    (
        "threads",
        r"(num_?|max_?)?(threads?|warps?|warpgroups?)(_?per_?block|_?[mn])?|block_?(dim|size|threads)|consumers?",
    ),
    ("tile", r"\w*tile\w*|block(_?([a-z]|rows|columns|keys|queries))?|bm|bn|bk|rows|columns|step"),
    ("vector width", r"vec(tor)?(_?(width|size))?|width|(bytes|elements|values)_?per_?(load|thread|lane)"),
    ("unroll", r"unroll(ed)?"),
)
"""Names of constants and types, without the `k` before a constant's, in lower case; the first that fits whole is it."""
_LOCAL = re.compile(
    r"(__)?launch_bounds(__)?|(block|grid)Dim|num_?(warps|threads|stages|blocks|ctas)|(threads|warps|stages|grid|blocks)"
    r"|block_size|block(_[mnk])?|unroll|maxnreg|waves_per_eu"
)
"""Names of settings that are no constants. Others of the kind, such as rows, are as often what a loop counts."""
_KINDS = {kind for kind, _ in _SETTINGS}
_WORDS = (
    ("launch bounds", r"__launch_bounds__|maxrregcount"),
    ("unroll", r"(static_)?unroll|nounroll|tl\.static_range"),
    ("vector width", r"(float|int|uint|half|short|char|double|bfloat16)(2|4|8|16)|half2|__nv_bfloat162|vector_size"),
    ("swizzle", r"\w*swizzle\w*"),
    ("fast maths", r"__expf|__exp2f|ex2|approx|__fdividef|__frcp_\w+|use_fast_math|exp2f?|ffast"),
    ("flags", r"""["'](?:-O[0-3s]|-f[a-z-]+|-m[a-z0-9=-]+|-X\w+|-D\w|--?[a-z]).*"""),
)
"""Words in code."""
_TOKEN = re.compile(r"""[A-Za-z_]\w*|\d[\w.']*|"[^"\n]*"|'[^'\n]*'|<<<|>>>|[=!<>]=|->|::|\S""")
_NUMBER = re.compile(r"-?\d")
_NAME = re.compile(r"""["']?[A-Za-z_]\w*["']?$""")
_CONSTANT = re.compile(r"k?[A-Z]\w*$")
_OWN = re.compile(r"k[A-Z]\w*$|[A-Z][A-Z0-9_]+$")
_SOURCES = {".cu", ".cuh", ".cpp", ".cc", ".c", ".h", ".hpp", ".inl", ".py"}
_OPEN, _CLOSE = {"(": ")", "[": "]", "{": "}", "<": ">", "<<<": ">>>"}, {")", "]", "}", ">", ">>>"}


_Varied = tuple[str, str]
"""The kind of a setting, or a constant's name where it has none, and a value that was removed or added."""


def of(patch: str, cards: Mapping[str, Sequence[str]] | None = None) -> tuple[str, ...]:
    """Names of what a patch varies; "code" for lines of no kind, and "kernel <name>" where it changes several. `cards`:
    the beginnings of each card's sources. Kernels are those of several cards, else of several folders."""
    kinds: dict[str, None] = {}
    before, after, paths = Counter[_Varied](), Counter[_Varied](), list[str]()
    for path, runs in _files(patch):
        found = [_of_run(_tokens(removed, path), _tokens(added, path)) for removed, added in runs]
        for gone, come, code in found:
            before.update(gone)
            after.update(come)
            kinds |= dict.fromkeys(code)
        is_source = PurePosixPath(path).suffix in _SOURCES and ".ci" not in PurePosixPath(path).parts
        paths += [path] if is_source and any(map(any, found)) else []
    moved = before & after  # a setting that stands elsewhere now
    old, new = (dict.fromkeys(kind for kind, _ in side - moved) for side in (before, after))
    # A constant of no kind that is new belongs to the code that it came with.
    settings = [kind for kind in old | new if kind in _KINDS or (kind in old and kind in new)]
    return (*settings, *(kind for kind in kinds if kind not in settings), *_kernels(paths, cards or {}))


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


def _files(patch: str) -> Iterator[tuple[str, list[tuple[list[str], list[str]]]]]:
    """Path of each file, and its runs of changed lines: removed and added ones."""
    for part in re.split(r"^--- (?=(?:a/|/dev/null)[^\n]*\n\+\+\+ )", patch, flags=re.MULTILINE)[1:]:
        before, after, *body = part.split("\n")
        path = (before if after.startswith("+++ /dev/null") else after.removeprefix("+++ ")).rstrip("\t")
        runs: list[tuple[list[str], list[str]]] = [([], [])]
        for line in body:
            if line.startswith(("-", "+")):
                runs[-1][line.startswith("+")].append(line[1:])
            elif any(runs[-1]) and not line.startswith("\\"):
                runs.append(([], []))
        yield path.removeprefix("a/").removeprefix("b/"), runs


def _tokens(lines: Sequence[str], path: str) -> list[str]:
    """Without comments."""
    comment = r"(?:^|\s)#.*" if path.endswith(".py") else r"//.*|/\*.*?(?:\*/|$)|^\s*\*(?:\s.*|/.*)?$"
    return [token for line in lines for token in (*_TOKEN.findall(re.sub(comment, "", line)), "\n")]


def _of_run(before: list[str], after: list[str]) -> tuple[list[_Varied], list[_Varied], list[str]]:
    """Settings that are removed and added, and the kinds of code that differ."""
    matcher = SequenceMatcher(None, before, after)
    old, new, words = list[_Varied](), list[_Varied](), dict[str, None]()
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag != "equal":
            for tokens, places, found in ((before, range(i, j), old), (after, range(k, m), new)):
                for place in places:
                    kind, one = _setting(tokens, place), tokens[place]
                    if kind is None and one not in ("\n", "#", "pragma"):
                        words[next((word for word, known in _WORDS if re.fullmatch(known, one)), CODE)] = None
                    elif kind is not None and (_NUMBER.match(one) or _NAME.match(one)):
                        found.append((kind, one))
    known = [kind for kind in words if kind != CODE]
    return old, new, list(words) if len(known) < 2 else [CODE]  # code that is written anew has words of all kinds


def _setting(tokens: Sequence[str], place: int) -> str | None:
    """The kind of what a token is the value of; a constant of no kind is one of its own. None: it is code."""
    is_number = bool(_NUMBER.match(tokens[place]))
    for name in _holders(tokens, place):
        kind = _kind(name.strip("\"'"))
        if kind is not None and (is_number or _CONSTANT.match(name) or kind in ("grid", "launch bounds")):
            return kind
        if is_number and _OWN.match(name):
            return name
    return None


def _kind(name: str) -> str | None:
    if not (_CONSTANT.match(name) or _LOCAL.fullmatch(name)):
        return None
    small = re.sub(r"^k(?=[A-Z])", "", name).strip("_").lower()
    return next((kind for kind, names in _SETTINGS if re.fullmatch(names, small)), None)


def _holders(tokens: Sequence[str], place: int) -> Iterator[str]:
    """What a token stands in, from the inside out: the name that it is given to, the call, template or launch."""
    depth = commas = 0
    for at in range(place - 1, -1, -1):
        one = tokens[at]
        if one in _CLOSE:
            depth += 1
        elif one in _OPEN and depth:
            depth -= 1
        elif depth == 0 and one in (";", "}"):
            return
        elif depth == 0 and one == ",":
            commas += 1
        elif depth == 0 and one in _OPEN:
            if one == "<<<":
                yield ("grid", "threads")[commas] if commas < 2 else CODE
            elif at and _NAME.match(tokens[at - 1]):
                yield tokens[at - 1]
            commas = 0
        elif depth == 0 and commas == 0 and one in ("=", ":") and at and _NAME.match(tokens[at - 1]):
            yield tokens[at - 1] if tokens[at - 1] != "constexpr" else tokens[max(0, at - 5)]
        elif depth == 0 and commas == 0 and at + 1 == place and one in ("unroll", "num_warps", "num_stages"):
            yield one
        elif one == "define" and at + 2 <= place:
            yield tokens[at + 1]
        elif one == "\n" and depth == 0 and tokens[at - 1] not in (",", "(", "=", "\\", "{", "["):
            return
