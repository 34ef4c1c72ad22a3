"""The part of a pull request's description that kernelgate writes: between two marks, and nothing else.

The end mark holds a digest of what stands before it. So words that somebody else wrote there are seen, and stay.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

BEGIN = "<!-- kernelgate-results -->"
MAX_BODY = 65_536
"""Characters that GitHub keeps of a description."""

_END = re.compile(r"<!-- /kernelgate-results(?: ([0-9a-f]{16}))? -->")


@dataclass(frozen=True)
class _Found:
    """Where a block stands, with its marks."""

    start: int
    end: int
    text: str
    digest: str | None

    @property
    def is_ours(self) -> bool:
        """Empty, or as it was written last."""
        return not self.text or self.digest == _digest(self.text)


def without(body: str) -> str:
    """The description as its author wrote it: what stands between the marks is no claim and no hypothesis."""
    kept, at = [], 0
    for block in _blocks(body):
        kept.append(body[at : block.start])
        at = block.end
    return "".join([*kept, body[at:]])


def is_there(body: str | None) -> bool:
    return next(_blocks(body or ""), None) is not None


def filled(body: str, text: str) -> str | None:
    """The description with `text` in its first block; the same where it holds the text already.

    None where there is no block, somebody else wrote in it, or the whole would be too long.
    """
    found, text = next(_blocks(body), None), text.strip()
    if found is None or not found.is_ours:
        return None
    if found.text == text:
        return body
    block = f"{BEGIN}\n\n{text}\n\n<!-- /kernelgate-results {_digest(text)} -->"
    made = body[: found.start] + block + body[found.end :]
    return made if len(made) <= MAX_BODY else None


def _blocks(body: str) -> Iterator[_Found]:
    at = 0
    while (start := body.find(BEGIN, at)) >= 0 and (end := _END.search(body, start)):
        # GitHub may change line ends and the space around.
        text = body[start + len(BEGIN) : end.start()].replace("\r\n", "\n").strip()
        yield _Found(start, end.end(), text, end[1])
        at = end.end()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
