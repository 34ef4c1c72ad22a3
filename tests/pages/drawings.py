"""Writes the drawings of the guides into docs/images: `python -m tests.pages.drawings`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from kernelgate.ci.lab import coming, drawings, folder, session_entries
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.policy import policy
from kernelgate.ci.policy.policy import Policy
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
    return {
        **nsight.pictures(),
        **visual_guide.pictures(),
        **walkthrough.pictures(session.events, rules),
        "sessions": sessions(folder.every(ROOT), rules),
    }


def sessions(every: Iterable[Session], rules: Policy) -> str:
    """As `kernelgate session metrics -o` draws them; an open one up to its last event, whenever this is drawn."""
    rows = [coming.summary(one.events, rules, session_entries.until(one.events)) for one in every]
    return drawings.file(drawings.beside(rows))


if __name__ == "__main__":
    main()
