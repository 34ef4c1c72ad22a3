"""The cookbook against the code: every command runs, every recommendation has its section."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from kernelgate.bench.build import toolchain
from kernelgate.ci.commands import cli
from kernelgate.ci.explain import recommend
from tests import docs_code

ROOT = Path(__file__).parent.parent
COOKBOOK = ROOT / "docs" / "CUDA_COOKBOOK.md"
TEXT = COOKBOOK.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", TEXT, flags=re.DOTALL)
COMMANDS = sorted({line for block in BLOCKS for line in block.splitlines() if line.startswith("kernelgate ")})


def anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(path: Path) -> set[str]:
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)}


def test_each_action_links_to_its_section() -> None:
    links = {one.link.partition("#")[::2] for one in recommend.ACTIONS}
    assert {ROOT / path for path, _ in links} == {COOKBOOK}
    assert {fragment for _, fragment in links} <= anchors(COOKBOOK)


@pytest.mark.usefixtures("reports_at_once")
def test_each_command_is_taken_and_runs_where_it_needs_no_gpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Parsed whole: verbs, options and arguments."""
    monkeypatch.chdir(ROOT)
    assert COMMANDS
    for command in COMMANDS:
        docs_code.parsed(command)
        if re.match(r"kernelgate (analyze|decide|resources --tile)", command):
            assert cli.run(shlex.split(command)[1:]) == 0, command
            assert capsys.readouterr().out


def test_the_quick_reference_has_every_verb() -> None:
    table = TEXT.split("## Quick reference")[1].split("## References")[0]
    assert set(re.findall(r"^\| `kernelgate (\w+)`", table, re.MULTILINE)) == set(docs_code.top_level())


NVCC = pytest.mark.skipif(toolchain.find().cuda is None, reason="there is no nvcc")
INSTRUCTIONS = {
    "loads": (set(), {"LDG.E.128", "STG.E.128"}),
    "restrict": ({"LDG.E"}, {"LDG.E.CONSTANT"}),
    "unroll": ({"LDL", "STL"}, set()),
    "index": (set(), set()),
}
"""Of each pair of fragments: what the first alone, and the second alone, has of these."""


@NVCC
@pytest.mark.slow
@pytest.mark.parametrize("pair", INSTRUCTIONS)
def test_each_fragment_compiles_to_what_the_page_says(pair: str, tmp_path: Path) -> None:
    docs_code.write_files(COOKBOOK, tmp_path)
    before, after = (instructions(tmp_path / f"{pair}_{when}.cu") for when in ("before", "after"))
    gone, new = INSTRUCTIONS[pair]
    assert gone <= before - after
    assert new <= after - before


def instructions(source: Path) -> set[str]:
    """The memory instructions of a kernel for sm_89, without what follows their width."""
    compiled = docs_code.run(docs_code.ShownCommand(f"nvcc -O3 -arch=sm_89 -cubin {source}", ()), source.parent)
    assert compiled.returncode == 0, compiled.stdout
    cubin = source.with_suffix(".cubin")
    words = docs_code.ShownCommand(f"cuobjdump -sass {cubin.name}", ())
    return set(
        re.findall(r"\b(?:LDG|STG|LDL|STL)(?:\.E)?(?:\.128|\.CONSTANT)?", docs_code.run(words, source.parent).stdout)
    )
