"""Which lines of a patch a remark stands beside."""

from __future__ import annotations

import pytest

from kernelgate.ci.github.annotations import changed_lines

PATCH = """@@ -10,6 +10,7 @@ __global__ void k() {
 a
-b
+c
+d
 e
@@ -40,3 +41,2 @@
 x
-y
 z"""


@pytest.mark.parametrize(
    ("patch", "lines"),
    [
        ("", []),
        ("@@ -0,0 +1,3 @@\n+a\n+b\n+c", [(1, 3)]),
        ("@@ -1,3 +0,0 @@\n-a\n-b\n-c", []),
        ("@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file", [(1, 1)]),
        (PATCH, [(11, 12), (42, 42)]),
        ("@@ -5,4 +5,6 @@\n a\n+b\n c\n+d\n e\n f", [(6, 6), (8, 8)]),
        ("no hunk at all", []),
    ],
)
def test_changed_lines_of_a_patch(patch: str, lines: list[tuple[int, int]]) -> None:
    assert changed_lines(patch) == lines
