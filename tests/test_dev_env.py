"""docs/dev_env.md: each name of the founding documents has a command, and a test runs it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import docs_code
from tests.called import EndsWith

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "dev_env.md").read_text(encoding="utf-8")
SECTIONS = {part.split("\n", 1)[0]: part for part in TEXT.split("\n## ")}
NSIGHT = "tests/data/nsight"
DRAM = f"{NSIGHT}/dram.ncu-rep"
KEPT = {
    "compare CAND --baseline BASE": (
        "compare .ci/baseline_h200.json --baseline tests/data/baseline_h200.json",
        "faster",
    ),
    "recommend REPORT --json": (f"recommend {DRAM} --json", "narrower-types"),
    "decide 0.8 0.32": ("decide 0.8 0.32", "Next: kernelgate profile"),
    "analyze REPORT": (f"analyze {DRAM}", "narrower types"),
    "analyze REPORT --against EARLIER": (f"analyze {DRAM} --against {NSIGHT}/dram_sections.ncu-rep", "narrower types"),
    "session metrics -o out/sessions.svg": ("session metrics -o {out}/sessions.svg", "Measured:"),
    "prompt SESSION": ("prompt attention-mma-tuned", "## Begin"),
}
"""Commands of the founding documents' names, what a kept file makes of each, and a part of what it then says."""
BUILDS = ("doctor", 'session new "OBJECTIVE"', "fuzz")
"""Which the tests of their packages run."""
GPU = (
    "bench --alone --case s512_b32_h8_d64_fp16",
    "profile --case s512_b32_h8_d64_fp16",
    "profile --set full --json",
)
ELSEWHERE = ("make env", "python setup.py build_ext --inplace")
"""Which other tests run: the scenes of tests/engine and tests/test_install.py."""


def test_each_name_of_the_founding_documents_has_a_command_that_a_test_runs() -> None:
    rows = re.findall(r"^\| .+ \| (.+) \|$", SECTIONS["Names in the founding documents"], re.MULTILINE)
    told = {command for row in rows[2:] for command in re.findall(r"`(.+?)`", row)}
    assert told == {*(f"kernelgate {one}" for one in (*KEPT, *BUILDS, *GPU)), *ELSEWHERE}
    for command in GPU:
        docs_code.parsed(f"kernelgate {command}")


@pytest.mark.parametrize("shown", KEPT)
def test_it_does_its_work_on_what_is_kept(
    shown: str, tmp_path: Path, ends_with: EndsWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    line, said = KEPT[shown]
    # Two days of one machine are not told apart: their processes scatter.
    code = 3 if shown.startswith("compare") else 0
    assert said in "".join(ends_with(code, *line.format(out=tmp_path).split()))
    assert [path.name for path in tmp_path.iterdir()] == (["sessions.svg"] if "{out}" in line else [])
