"""The example repositories made slower: 5 % more blocks, which do the first rows a second time with the same result.

A large case takes about 5 % longer; one of fewer than 20 blocks as long as before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_CHANGES: Mapping[str, Mapping[str, Sequence[tuple[str, str]]]] = {
    "rmsnorm": {
        "csrc/rmsnorm_kernel.cu": (
            ("unsigned vectors, float eps) {", "unsigned vectors, float eps, unsigned rows) {"),
            ("const int64_t row = blockIdx.x;", "const int64_t row = blockIdx.x % rows;"),
            (
                "const auto blocks = static_cast<unsigned>(arguments.rows);",
                "const auto rows = static_cast<unsigned>(arguments.rows);\n  const unsigned blocks = rows + rows / 20;",
            ),
            ("vectors, arguments.eps);", "vectors, arguments.eps, rows);"),
        )
    },
    "swiglu": {
        "my_kernels/swiglu.py": (
            ("(triton.cdiv(elements, BLOCK),)", "(triton.cdiv(elements, BLOCK) * 21 // 20,)"),
            ("program = tl.program_id(0)", "program = (tl.program_id(0) % tl.cdiv(elements, block))"),
        )
    },
}
"""Repository -> path -> what stands there, and what is to stand there."""


def slowed(name: str, files: Mapping[str, str]) -> dict[str, str]:
    """The files of repository `name`, by path, with its kernel slower."""
    slower = dict(files)
    for path, changes in _CHANGES[name].items():
        for old, new in changes:
            assert slower[path].count(old) == 1, f"{path} has {old!r} {slower[path].count(old)} times"
            slower[path] = slower[path].replace(old, new)
    return slower
