"""The README: its comment is what the code makes of the record, its commands exist, its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.ci import cli
from kernelgate.ci.document import render
from kernelgate.ci.judge import policy
from kernelgate.ci.report.build import judged_report

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def example() -> str:
    """The comment of the paired comparison that the README shows, without the hidden marker."""
    path = Path("tests/data/cards/swiglu_slower.json")
    said = judged_report(record.read(ROOT / path), policy.load(ROOT / ".ci" / "kernelgate.toml"), str(path))
    return render.comment(said).replace(render.MARKER, "").strip()


def test_the_comment_is_real() -> None:
    shown = README.split("\n---\n")[1].strip()
    assert shown == example()


@pytest.mark.parametrize("verb", sorted(set(re.findall(r"\.venv/bin/kernelgate (\w+)", README))))
def test_every_command_exists(verb: str) -> None:
    assert verb in cli.cli.commands


@pytest.mark.parametrize("target", sorted(set(re.findall(r"^make (\w+)|^    make (\w+)", README, re.MULTILINE))))
def test_every_make_target_exists(target: tuple[str, str]) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{''.join(target)}:", makefile, re.MULTILINE)


def test_the_license_is_one() -> None:
    """The founding documents say MIT: so do the file, the package and the page, and no file says otherwise."""
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("MIT License\n\nCopyright (c) ")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (project["license"], project["license-files"]) == ("MIT", ["LICENSE"])
    assert not [word for word in project.get("classifiers", []) if word.startswith("License")]
    assert "## License\n\n[MIT](LICENSE)." in README
    other = "Apa" + "che"
    found = subprocess.run(["git", "grep", "-il", other], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.stdout.split() == []


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_links_inside_the_repository_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    dead = [link for link in links if link and not (ROOT / page).parent.joinpath(link).exists()]
    assert dead == []
