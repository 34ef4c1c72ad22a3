"""The cookbook against the code: no dead link, every command runs, every recommendation has its section."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from kernelgate.bench.explain.nsight import PERMISSION
from kernelgate.ci import cli
from kernelgate.ci.explain import recommend
from kernelgate.ci.explain.bottleneck import Bottleneck

ROOT = Path(__file__).parent.parent
COOKBOOK = ROOT / "docs" / "CUDA_COOKBOOK.md"
TEXT = COOKBOOK.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", TEXT, flags=re.DOTALL)
COMMANDS = sorted({line for block in BLOCKS for line in block.splitlines() if line.startswith("kernelgate ")})
NEEDS_NO_GPU = [line for line in COMMANDS if re.match(r"kernelgate (analyze|decide|resources --tile)", line)]

HEADINGS = ("Quick start", "Architecture primer", "The six metrics", "Benchmarking protocol", "Build strategy",
            "Optimisation catalogue", "Statistical requirements", "Deployment and fallback", "References",
            "Troubleshooting", "Quick reference")  # fmt: skip


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
    named = set(re.findall(r"\]\[(\w+)\]", TEXT))
    assert named == set(re.findall(r"^\[(\w+)\]: https://\S+$", TEXT, re.MULTILINE))


@pytest.mark.parametrize(
    "anchor", [*map(recommend.ANCHORS.__getitem__, Bottleneck), *(one for _, one in recommend.OWN_ADVICE.values())]
)
def test_each_recommendation_links_to_its_section(anchor: str) -> None:
    path, _, fragment = recommend.link(anchor).partition("#")
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
    assert set(re.findall(r"^\| `kernelgate (\w+)`", table, re.MULTILINE)) == set(cli.cli.commands)


def test_permission_is_explained_as_the_tool_says_it() -> None:
    assert "NVreg_RestrictProfilingToAdminUsers=0" in PERMISSION
    assert "NVreg_RestrictProfilingToAdminUsers=0" in TEXT
