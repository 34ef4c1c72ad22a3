"""Writes the drawings of the guides into docs/images: `python -m tests.pages.drawings`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kernelgate.ci.judge import policy
from kernelgate.ci.sessions import folder
from tests.pages import nsight, visual_guide, walkthrough

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"


def main() -> None:
    for name, text in every().items():
        (IMAGES / f"{name}.svg").write_text(text, encoding="utf-8")


def every() -> Mapping[str, str]:
    """All drawings, by name."""
    rules = policy.load(ROOT / policy.POLICY_FILE)
    session = folder.read(ROOT / folder.FOLDER / "rmsnorm-memory-speed")
    return {**nsight.pictures(), **visual_guide.pictures(rules), **walkthrough.pictures(session.events, rules)}


if __name__ == "__main__":
    main()
