"""Where the documentation is published. The repositories that are measured have none of it."""

from __future__ import annotations

DOCS = "https://github.com/kernelgate/kernelgate/blob/HEAD/docs"


def page(place: str) -> str:
    """The address of a page; `place`: file and heading, such as "comment.md#accept"."""
    return f"{DOCS}/{place}"
