"""docs/cards.md: it has every member of a card, the tolerances that count, and messages that the code says."""

from __future__ import annotations

import re
from pathlib import Path

from kernelgate import Kernel
from kernelgate.bench.kernel.cards import TOLERANCES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/cards.md").read_text(encoding="utf-8")


def test_every_member_is_in_the_table_and_no_other() -> None:
    section = PAGE.split("\n## Members\n")[1].split("\n### ")[0]
    told = set(re.findall(r"^\| `(\w+)", section, re.MULTILINE))
    members = {*Kernel.__annotations__, *(name for name in vars(Kernel) if not name.startswith("_"))}
    assert told == members


def test_the_tolerances_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| (\w+) \| ([\d.e-]+) \| ([\d.e-]+) \|$", PAGE, re.MULTILINE)
    assert {dtype: (float(atol), float(rtol)) for dtype, atol, rtol in rows} == {
        dtype: (one.atol, one.rtol) for dtype, one in TOLERANCES.items() if one.atol
    }


def test_every_mistake_is_said_by_the_code() -> None:
    section = PAGE.split("\n## Mistakes\n")[1]
    messages = re.findall(r"^\| `(.+?)` \|", section, re.MULTILINE)
    code = " ".join(path.read_text(encoding="utf-8") for path in (ROOT / "bench").rglob("*.py"))
    said = re.sub(r'"\s*\n\s*f?"', "", code)
    parts = {part.strip() for message in messages for part in message.split("…")}
    # That one is the linker's.
    assert {part for part in parts if part not in said} == {"undefined reference to aoti_torch_get_current_cuda_stream"}
