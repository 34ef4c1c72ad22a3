"""docs/dev_env.md: its commands run, something reads its variables, and something says its messages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernelgate.ci.commands import cli
from tests import docs_code
from tests.miniature import git
from tests.workflows.repository import copy_project

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "dev_env.md").read_text(encoding="utf-8")
SECTIONS = {part.split("\n", 1)[0]: part for part in TEXT.split("\n## ")}
COMMANDS = sorted(set(re.findall(r"kernelgate (?:doctor|build|bench)(?: --[a-z-]+ [A-Z][\w~]+)?", TEXT)))
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
"""Those that compile, on a copy of the checkout."""
GPU = (
    "bench --alone --case s512_b32_h8_d64_fp16",
    "profile --case s512_b32_h8_d64_fp16",
    "profile --set full --json",
)
ELSEWHERE = ("make env", "python setup.py build_ext --inplace")
"""Which other tests run: tests/workflows/test_end_to_end.py and tests/test_install.py."""


def tracked(*patterns: str) -> str:
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return "\n".join((ROOT / name).read_text(encoding="utf-8") for name in listed.stdout.split("\0") if name)


def test_each_command_is_taken_and_each_variable_and_message_is_known() -> None:
    assert COMMANDS
    for command in (*COMMANDS, *(f"kernelgate {one}" for one in GPU)):
        docs_code.parsed(command)
    code = tracked("bench/*.py", "csrc/*.py")
    variables = re.findall(r"^\| `([A-Z_]+)` \|", SECTIONS["Variables"], re.MULTILINE)
    assert [name for name in variables if f'"{name}"' not in code] == []
    messages = set(re.findall(r"^\| `(.+?)`", SECTIONS["Troubleshooting"], re.MULTILINE)) - {"undefined symbol"}
    whole = re.sub(r'"\s*\n\s*f?"', "", code)
    parts = [part.strip() for message in messages for part in message.split("…")]
    assert [part for part in parts if part not in whole] == []


def test_each_name_of_the_founding_documents_has_a_command_that_a_test_runs() -> None:
    rows = re.findall(r"^\| .+ \| (.+) \|$", SECTIONS["Names in the founding documents"], re.MULTILINE)
    told = {command for row in rows[2:] for command in re.findall(r"`(.+?)`", row)}
    assert told == {*(f"kernelgate {one}" for one in (*KEPT, *BUILDS, *GPU)), *ELSEWHERE}


@pytest.mark.parametrize("shown", KEPT)
def test_it_does_its_work_on_what_is_kept(
    shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    line, said = KEPT[shown]
    code = cli.run(line.format(out=tmp_path).split())
    # Two days of one machine are not told apart: their processes scatter.
    assert code == (3 if shown.startswith("compare") else 0)
    printed = capsys.readouterr()
    assert said in printed.out + printed.err
    assert [path.name for path in tmp_path.iterdir()] == (["sessions.svg"] if "{out}" in line else [])


@pytest.mark.slow
def test_what_compiles_does_so_on_a_copy_of_the_checkout(tmp_path: Path) -> None:
    copy_project(tmp_path / "copy")
    git(tmp_path / "copy", "init", "--quiet", "--initial-branch=main")
    git(tmp_path / "copy", "add", "--all")
    git(tmp_path / "copy", "commit", "--quiet", "--message", "Begin")
    environment = {**os.environ, "KERNELGATE_CACHE": str(tmp_path / "cache")}
    verb = Path(sys.executable).with_name("kernelgate")
    for words in (["doctor"], ["session", "new", "OBJECTIVE"], ["fuzz", "--time-limit", "20"]):
        done = subprocess.run([verb, *words], cwd=tmp_path / "copy", env=environment, capture_output=True, text=True)
        # This machine need not be fit to measure; doctor says so.
        assert done.returncode in ((0, 1) if words == ["doctor"] else (0,)), done.stdout + done.stderr
