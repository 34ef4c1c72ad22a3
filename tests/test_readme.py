"""The README and the page on the comment: messages are those of the code, commands exist, links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelgate.ci.document.model import Mark
from kernelgate.ci.github import command
from tests import docs_code

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = ROOT / "docs" / "comment.md"
LINKERS = "undefined reference to aoti_torch_get_current_cuda_stream"
"""A message of docs/cards.md that is the linker's."""


def test_every_mark_is_explained() -> None:
    text = PAGE.read_text(encoding="utf-8").split("\n## ")[1]
    assert {mark.emoji for mark in Mark} <= set(re.findall(r"^\|([^|\s]+)\|", text, re.MULTILINE)) | {"mark", "---"}


@pytest.mark.parametrize(("page", "heading", "folder"), [("comment", "Messages", "ci"), ("cards", "Mistakes", "bench")])
def test_every_message_is_one_that_the_code_says(page: str, heading: str, folder: str) -> None:
    section = (PAGE.parent / f"{page}.md").read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\|(`[^|]+)\|", section, re.MULTILINE)
    messages = [message for cell in cells for message in re.findall(r"`([^`]+)`", cell)]
    code = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / folder).rglob("*.py"))
    said = re.sub(r'"\s*\n\s*f?"', "", code).casefold()
    parts = {part.strip(" :,") for message in messages for part in message.casefold().split("…")}
    assert {part for part in parts if part not in said} <= {LINKERS}


def test_every_command_of_a_comment_is_one() -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = [
        line.replace("[CASE…]", "c").replace("[BAD]", "b") for line in re.findall(r"(/kernelgate \w[^`\n]*)", text)
    ]
    parsed = [command.parse(line) for line in shown]
    assert [line for line, one in zip(shown, parsed, strict=True) if one is None or one.fault] == []
    assert {one.verb for one in parsed if one} == set(command.VERBS)


def test_every_command_and_make_target_exists() -> None:
    assert set(re.findall(r"`kernelgate (\w+)", README + PAGE.read_text("utf-8"))) <= set(docs_code.top_level())
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert set(re.findall(r"^ *make (\w+)", README, re.MULTILINE)) <= set(
        re.findall(r"^(\w+):", makefile, re.MULTILINE)
    )


def test_links_inside_the_repository_lead_somewhere() -> None:
    dead = []
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")):
        found = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
        links = [link.split("#")[0] for link in found if "://" not in link]
        dead += [(page.name, link) for link in links if link and not (page.parent / link).exists()]
    assert dead == []


def test_every_address_in_a_message_leads_to_a_heading() -> None:
    """Whoever installed kernelgate has none of its files."""
    code = " ".join(path.read_text(encoding="utf-8") for top in ("bench", "ci") for path in (ROOT / top).rglob("*.py"))
    named = set(re.findall(r'\b(?:page|docs)\([^()]*?"([\w.]+\.md)(?:#([\w-]+))?"\)', code))
    assert len(named) > 10
    for page, fragment in sorted(named):
        assert not fragment or fragment in docs_code.anchors(ROOT / "docs" / page), f"{page}#{fragment}"
