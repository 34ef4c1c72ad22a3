"""`pip install` of a copy of the checkout, without network: the environment's packages serve a fresh one."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kernelgate.bench.build import cache as build_cache
from tests.miniature import git
from tests.workflows.repository import copy_project

ROOT = Path(__file__).parent.parent
OURS = Path(sysconfig.get_path("purelib"))
OFFLINE = ("--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check")

ATTENTION = """\
import torch
import fa_s512

q, k, v = (torch.randn(2, 3, 77, 64, generator=torch.Generator().manual_seed(seed)) for seed in range(3))
expected = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=True)
error = (fa_s512.attention(q, k, v, causal=True) - expected).abs().max().item()
assert error <= 1e-5, error
assert torch.equal(fa_s512.fa_s512(q, k, v), fa_s512.attention(q, k, v))
print(fa_s512.__file__)
"""


def site_packages(environment: Path) -> Path:
    return Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))


def ended(*words: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the next commit would hold, so that nothing is written into the user's checkout."""
    copy = tmp_path / "checkout"
    copy_project(copy)
    return copy


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A fresh environment's Python; it sees the packages that are installed beside ours."""
    home = tmp_path / "environment"
    venv.create(home, with_pip=False)
    (site_packages(home) / "ours.pth").write_text(f"{OURS}\n", encoding="utf-8")
    return home / "bin" / "python"


@pytest.fixture
def pip(python: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    return partial(ended, python, "-m", "pip", "install", *OFFLINE, cwd=tmp_path)


def built_in_place(python: Path, checkout: Path) -> subprocess.CompletedProcess[str]:
    return ended(python, "setup.py", "build_ext", "--inplace", cwd=checkout)


def bare(tmp_path: Path) -> Path:
    """The Python of an environment that holds pip and what builds a wheel alone."""
    home = tmp_path / "bare"
    venv.create(home, with_pip=False)
    builds = (one for name in ("setuptools*", "vcs_versioning*", "packaging*") for one in OURS.glob(name))
    for package in (OURS / "pip", *builds, OURS / "_distutils_hack"):
        (site_packages(home) / package.name).symlink_to(package)
    return home / "bin" / "python"


@pytest.mark.slow
def test_a_wheel_holds_the_tool_alone_and_runs_beside_packages_of_its_names(
    checkout: Path, pip: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """A repository may well have packages called `ci` and `bench`; and a wheel of the tool serves every machine."""
    (checkout / "csrc" / "attention" / "attention.h").write_text("#error never compiled\n", encoding="utf-8")
    installed = pip(str(checkout))
    assert installed.returncode == 0, installed.stdout + installed.stderr
    library = site_packages(tmp_path / "environment")
    assert "Tag: py3-none-any" in next(library.glob("kernelgate-*.dist-info/WHEEL")).read_text(encoding="utf-8")
    assert not (library / "fa_s512").exists()
    assert not list((library / "kernelgate").rglob("*.so"))
    for theirs in ("ci", "bench"):
        (tmp_path / theirs).mkdir()
        (tmp_path / theirs / "__init__.py").write_text("raise SystemExit('theirs')\n", encoding="utf-8")
    record = ROOT / "tests" / "data" / "comparisons" / "slower_5pct.json"
    asked = ended(library.parents[2] / "bin" / "kernelgate", "report", record, "--html", "page.html", cwd=tmp_path)
    assert asked.returncode == 0, asked.stderr
    assert "slower" in asked.stdout
    assert "<svg" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_in_place_is_in_place(
    checkout: Path, python: Path, pip: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """An editable install compiles nothing; then `import fa_s512` finds what was compiled in the checkout."""
    installed = pip("--editable", str(checkout), **{build_cache.CACHE_VARIABLE: str(tmp_path / "cache")})
    assert installed.returncode == 0, installed.stdout + installed.stderr
    assert not (tmp_path / "cache").exists()
    assert not list(checkout.rglob("*.so"))
    code = "import kernelgate.bench as b; print(b.__file__); import fa_s512"
    imported = ended(python, "-I", "-c", code, cwd=tmp_path)
    assert Path(imported.stdout.strip()).is_relative_to(checkout)
    assert "ImportError: fa_s512 is not compiled" in imported.stderr
    built = built_in_place(python, checkout)
    assert built.returncode == 0, built.stderr
    library = checkout / "csrc" / "fa_s512" / "kernel.so"
    assert built.stdout.splitlines()[-1] == f"{library} is there; import fa_s512 loads it"
    computed = ended(python, "-I", "-c", ATTENTION, cwd=tmp_path)
    assert computed.returncode == 0, computed.stderr
    assert Path(computed.stdout.strip()).parent == library.parent


@pytest.mark.slow
def test_a_bare_python_is_enough_to_install_and_building_in_place_says_what_it_lacks(
    checkout: Path, tmp_path: Path
) -> None:
    """As in `make env`, where the other packages come with that very install."""
    python = bare(tmp_path)
    refused = built_in_place(python, checkout)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].startswith("error: this Python lacks pydantic: run this with")
    assert "Traceback" not in refused.stderr
    installed = ended(python, "-I", "-m", "pip", "install", *OFFLINE, "--editable", checkout, cwd=tmp_path)
    assert installed.returncode == 0, installed.stdout + installed.stderr


@pytest.mark.slow
def test_the_version_is_the_tags_and_says_where_there_is_none(checkout: Path, tmp_path: Path) -> None:
    """In a folder of some other repository, in a clone without tags, at a release, and in its source distribution."""
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "Theirs")
    git(tmp_path, "tag", "v9.9.9")
    assert version_in(checkout) == "0.0+unreleased"
    git(checkout, "init", "--quiet")
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "-m", "Ours")
    assert version_in(checkout) == f"0.1.dev1+unreleased.g{git(checkout, 'rev-parse', '--short=9', 'HEAD')}"
    for tag in ("v0.2.0", "v0"):
        git(checkout, "tag", tag)
    assert version_in(checkout) == "0.2.0"
    with source_distribution(checkout, tmp_path) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
        archive.extractall(tmp_path, filter="data")
    assert version_in(tmp_path / "kernelgate-0.2.0") == "0.2.0"
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "csrc" / "attention").rglob("*.*")}
    assert {*sources, "setup.py", "pyproject.toml", "LICENSE", "kernelgate/bench/build/build.py"} <= held
    assert {"csrc/fa_s512/__init__.py", ".ci/kernels/attention.py"} <= held


def version_in(folder: Path) -> str:
    return ended(sys.executable, "setup.py", "--version", cwd=folder, GIT_CONFIG_GLOBAL="/dev/null").stdout.strip()


def source_distribution(checkout: Path, folder: Path) -> tarfile.TarFile:
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(folder)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=checkout, capture_output=True, check=True)
    return tarfile.open(next(folder.glob("kernelgate-*.tar.gz")))
