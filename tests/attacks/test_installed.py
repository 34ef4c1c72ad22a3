"""What the jobs with a write token install: known files alone, whoever else publishes something under their names."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.utils import canonicalize_name

from tests.test_architecture import requirements
from tests.workflows.documents import ROOT

LOCK = ROOT / "requirements-judge.txt"
PIN = re.compile(
    r"(?P<name>[a-z0-9-]+)==(?P<version>[\w.]+)(?: ; (?P<marker>[^\\\n]+?))?(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n"
)


def locked() -> dict[str, str]:
    """{name: version}, of a file that holds pins with hashes and nothing else."""
    text = "".join(line for line in LOCK.read_text("utf-8").splitlines(keepends=True) if not line.startswith("#"))
    assert PIN.sub("", text) == "", "an option, an index, or a package without a hash"
    found = list(PIN.finditer(text))
    assert all(pin["marker"] is None or Marker(pin["marker"]).evaluate() for pin in found)
    return {pin["name"]: pin["version"] for pin in found}


def recipe(target: str) -> list[str]:
    """The commands of a rule of the Makefile."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    [found] = re.findall(rf"^{re.escape(target)}:[^\n]*\n((?:\t[^\n]+\n)+)", makefile, re.MULTILINE)
    return [line.strip() for line in found.splitlines()]


def test_the_lock_has_the_versions_of_the_constraints() -> None:
    """`make lock` writes it anew after a change."""
    listed = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    known = dict(line.split("==") for line in listed if "==" in line)
    assert locked().items() <= {canonicalize_name(name): version for name, version in known.items()}.items()


def test_the_lock_holds_what_judging_needs_and_nothing_else() -> None:
    [judge] = re.findall(r"^JUDGE := (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert set(locked()) == requirements(["setuptools", "vcs-versioning", *judge.split()])


def test_the_judges_packages_are_installed_by_their_hashes_alone() -> None:
    """From wheels: what builds a source distribution would be fetched without a hash."""
    for command in (line for line in recipe("$(JUDGING)") if "pip install" in line):
        whole = "--require-hashes --only-binary :all: --requirement $(LOCK)" in command
        assert whole or "--no-index --no-deps" in command, command
    assert recipe("$(JUDGING)")[0] == "$(PYTHON) -m venv $(VENV)"


@pytest.mark.nightly
def test_a_package_with_other_content_is_not_installed(tmp_path: Path) -> None:
    """Somebody publishes the version that is pinned, with code of their own."""
    version = locked()["click"]
    shop = tmp_path / "shop"
    shop.mkdir()
    with zipfile.ZipFile(shop / f"click-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("click/__init__.py", "print('got in')\n")
        about = f"click-{version}.dist-info"
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: click\nVersion: {version}\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    lock = tmp_path / "lock.txt"
    [pin] = [match[0] for match in PIN.finditer(LOCK.read_text("utf-8")) if match["name"] == "click"]
    lock.write_text(pin, "utf-8")
    words = ["make", "env-judge", f"VENV={tmp_path / 'venv'}", f"LOCK={lock}"]
    offline = {"PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(shop), "PYTHON": sys.executable}
    done = subprocess.run(words, cwd=ROOT, env=offline, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in done.stdout + done.stderr
    assert not list((tmp_path / "venv").rglob("click/__init__.py"))
