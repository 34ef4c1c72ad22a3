"""The cookbook and the page on the environment against the code: every command runs, every recommendation has its
section."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from kernelgate.bench.core.documentation import page
from kernelgate.bench.core.errors import PreemptedError
from kernelgate.ci.commands import exit_codes
from kernelgate.ci.explain import recommend
from kernelgate.ci.policy import policy
from tests import docs_code
from tests.called import EndsWith

ROOT = Path(__file__).parent.parent
COOKBOOK = ROOT / "docs" / "CUDA_COOKBOOK.md"
TEXT = COOKBOOK.read_text(encoding="utf-8")
COMMANDS = sorted({line for line in docs_code.commands(COOKBOOK) if line.startswith("kernelgate ")})


def test_each_action_links_to_its_section() -> None:
    links = {one.link.partition("#")[::2] for one in recommend.ACTIONS}
    assert {address for address, _ in links} == {page(COOKBOOK.name)}
    assert {fragment for _, fragment in links} <= docs_code.anchors(COOKBOOK)


@pytest.mark.usefixtures("reports_at_once")
def test_each_command_is_taken_and_runs_where_it_needs_no_gpu(
    monkeypatch: pytest.MonkeyPatch, ends_with: EndsWith
) -> None:
    """Parsed whole: verbs, options and arguments."""
    monkeypatch.chdir(ROOT)
    assert COMMANDS
    for command in COMMANDS:
        docs_code.parsed(command)
        if re.match(r"kernelgate (analyze|decide|resources --tile)", command):
            assert ends_with(0, *shlex.split(command)[1:]).out, command


def test_the_quick_reference_has_every_verb_and_exit_code() -> None:
    table = TEXT.split("## Quick reference")[1]
    assert set(re.findall(r"^- `(\w+)` ", table, re.MULTILINE)) == set(docs_code.top_level())
    codes = {exit_codes.STOP, PreemptedError.exit_code, exit_codes.UNEXPECTED, exit_codes.INPUT_OUTPUT}
    assert {str(code) for code in codes | {exit_codes.CLOSED_PIPE}} <= set(
        re.findall(r"^- (\d+): ", table, re.MULTILINE)
    )


def test_the_page_on_installing_has_every_key_of_the_policy() -> None:
    table = (ROOT / "docs/install.md").read_text("utf-8").split("\n### The policy\n")[1].split("\n## ")[0]
    keys = {key for name, section in policy.Policy().model_dump().items() for key in (name, *section)}
    keys |= {*policy.RunnerGpu.model_fields, *policy.GpuPrice.model_fields}
    assert keys <= set(re.findall(r"`\[?(\w+)\]?`", table))
    told: dict[str, object] = {}
    for names, defaults in re.findall(r"^\|(`\w+.*?`)\|([^|`]*\d.*?|`\S+`)\|", table, re.MULTILINE):
        told |= zip(re.findall(r"\w+", names), json.loads(f"[{defaults.replace('`', '')}]"), strict=True)
    assert told == policy.Policy().gates.model_dump()


# docs/dev_env.md: each name of the founding documents has a command, and a test runs it ------------------------------

NSIGHT = "tests/data/nsight"
DRAM = f"{NSIGHT}/dram.ncu-rep"
KEPT = {
    "compare CAND --baseline BASE": (
        "compare .ci/baseline_h200.json --baseline tests/data/baseline_h200.json",
        "faster",
    ),
    "recommend REPORT --json": (f"recommend {DRAM} --json", "narrower-types"),
    "policy": ("policy", "gates.regression_pct"),
    "resources --tile 64x64 --gpu l4": ("resources --tile 64x64 --gpu l4", "fits"),
    "decide 0.8 0.32": ("decide 0.8 0.32", "Next: kernelgate profile"),
    "analyze REPORT": (f"analyze {DRAM}", "narrower types"),
    "analyze REPORT --against EARLIER": (f"analyze {DRAM} --against {NSIGHT}/dram_sections.ncu-rep", "narrower types"),
    "session metrics -o out/sessions.svg": ("session metrics -o {out}/sessions.svg", "Measured:"),
    "prompt SESSION": ("prompt attention-mma-tuned", "## Begin"),
}
"""Commands of the founding documents' names, what a kept file makes of each, and a part of what it then says."""
BUILDS = (
    "doctor",
    'session new "OBJECTIVE" --name n-plus-5',
    "session status",
    'session close --learnt "WHAT YOU SAW"',
    "session review",
    "cache prune --days 0",
    "fuzz",
    "pr",
)
"""Which the tests of their packages run."""
GPU = (
    "bench --alone --case s512_b32_h8_d64_fp16",
    "bench --alone --suite full",
    "profile --alone --reference --case s512_b32_h8_d64_fp16",
    "profile --case s128_b32_h8_d64_fp16 --set full --json",
)
ELSEWHERE = (
    "make env",
    "python setup.py build_ext --inplace",
    'python -c "import fa_s512"',
    ".venv/bin/pytest tests/ -v",
)
"""Which others run: the scenes of tests/engine, tests/test_install.py, tests/csrc/test_package.py, and CI itself."""


def test_each_name_of_the_founding_documents_has_a_command_that_a_test_runs() -> None:
    text = (ROOT / "docs" / "dev_env.md").read_text(encoding="utf-8")
    names = text.split("\n## Names in the founding documents\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\|[^|]+\|([^|]+)\|$", names, re.MULTILINE)
    told = {command for row in rows for command in re.findall(r"`(.+?)`", row)}
    assert told == {*(f"kernelgate {one}" for one in (*KEPT, *BUILDS, *GPU)), *ELSEWHERE}
    for command in (*BUILDS, *GPU):
        docs_code.parsed(f"kernelgate {command}")


@pytest.mark.slow
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
