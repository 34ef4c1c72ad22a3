"""The cookbook against the code: no dead link, every command runs, every recommendation has its section."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from kernelgate.bench.build import toolchain
from kernelgate.bench.explain.nsight import PERMISSION
from kernelgate.ci.commands import cli
from kernelgate.ci.explain import recommend
from kernelgate.ci.explain.recommend import Action
from tests import docs_code

ROOT = Path(__file__).parent.parent
COOKBOOK = ROOT / "docs" / "CUDA_COOKBOOK.md"
TEXT = COOKBOOK.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", TEXT, flags=re.DOTALL)
COMMANDS = sorted({line for block in BLOCKS for line in block.splitlines() if line.startswith("kernelgate ")})
NEEDS_NO_GPU = [line for line in COMMANDS if re.match(r"kernelgate (analyze|decide|resources --tile)", line)]

HEADINGS = ("Quick start", "Architecture primer", "The six metrics", "Benchmarking protocol", "Build strategy",
            "Optimisation catalogue", "Statistical requirements", "Deployment and fallback", "References",
            "Troubleshooting", "Quick reference", "Ablation and pass bars", "The debugging loop",
            "The memory hierarchy")  # fmt: skip


def anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(path: Path) -> set[str]:
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)}


def test_has_every_section() -> None:
    assert {anchor(heading) for heading in HEADINGS} <= anchors(COOKBOOK)


def test_no_link_is_dead() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", TEXT)
    assert len(targets) > 20
    for target in targets:
        if target.startswith("https://"):
            continue
        path, _, fragment = target.partition("#")
        file = (COOKBOOK.parent / path) if path else COOKBOOK
        assert file.exists(), target
        assert not fragment or fragment in anchors(file), target
    prose = re.sub(r"^```.*?^```$", "", TEXT, flags=re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"\]\[(\w+)\]", prose))
    assert named == set(re.findall(r"^\[(\w+)\]: https://\S+$", TEXT, re.MULTILINE))


@pytest.mark.parametrize("action", recommend.ACTIONS, ids=lambda action: action.name)
def test_each_action_links_to_its_section(action: Action) -> None:
    path, _, fragment = action.link.partition("#")
    assert ROOT / path == COOKBOOK
    assert fragment in anchors(COOKBOOK)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_is_one_that_the_command_line_takes(command: str) -> None:
    """Parsed whole: verbs, options and arguments."""
    verb, *words = shlex.split(command)[1:]
    found = cli.cli.get_command(click.Context(cli.cli), verb)
    assert found is not None
    found.make_context(verb, words)


@pytest.mark.parametrize("command", NEEDS_NO_GPU)
def test_each_command_that_needs_no_gpu_runs(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert cli.run(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out


def test_the_quick_reference_has_every_verb() -> None:
    table = TEXT.split("## Quick reference")[1].split("## References")[0]
    assert set(re.findall(r"^\| `kernelgate (\w+)`", table, re.MULTILINE)) == set(docs_code.top_level())


def test_permission_is_explained_as_the_tool_says_it() -> None:
    assert "NVreg_RestrictProfilingToAdminUsers=0" in PERMISSION
    assert "NVreg_RestrictProfilingToAdminUsers=0" in TEXT


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


def test_each_fragment_belongs_to_a_pair(tmp_path: Path) -> None:
    docs_code.write_files(COOKBOOK, tmp_path)
    names = {f"{pair}_{when}.cu" for pair in INSTRUCTIONS for when in ("before", "after")}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert len(docs_code.blocks(COOKBOOK, "cuda")) == len(names)


def instructions(source: Path) -> set[str]:
    """The memory instructions of a kernel for sm_89, without what follows their width."""
    compiled = docs_code.run(docs_code.ShownCommand(f"nvcc -O3 -arch=sm_89 -cubin {source}", ()), source.parent)
    assert compiled.returncode == 0, compiled.stdout
    cubin = source.with_suffix(".cubin")
    words = docs_code.ShownCommand(f"cuobjdump -sass {cubin.name}", ())
    return set(
        re.findall(r"\b(?:LDG|STG|LDL|STL)(?:\.E)?(?:\.128|\.CONSTANT)?", docs_code.run(words, source.parent).stdout)
    )
