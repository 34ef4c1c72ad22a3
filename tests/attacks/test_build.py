"""What a commit may be made of so that its build says, or does, more than a compile."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernelgate.bench.build.sources import Extension, Package, package_sources, read_sources
from kernelgate.bench.core.errors import BuildError, CompileError
from kernelgate.bench.kernel import cards
from kernelgate.bench.system import git
from kernelgate.ci.commands import cli
from kernelgate.ci.lab import mcp_server
from tests import miniature
from tests.miniature import write


@pytest.mark.parametrize("root", ["", "src/"], ids=["top", "src"])
@pytest.mark.parametrize("link", ["file", "first file", "package", "module"])
def test_a_link_out_of_a_package(tmp_path: Path, root: str, link: str) -> None:
    outside = write(tmp_path / "outside", {"secret.py": "secret", "secrets/secret.py": "secret"})
    tree = write(tmp_path / "tree", {f"{root}other.py": ""})
    if link in ("file", "first file"):
        write(tree, {f"{root}kernels/__init__.py": ""})
    name, to = {
        "file": ("kernels/table.py", "secret.py"),
        "first file": ("kernels/__init__.py", "secret.py"),
        "package": ("kernels", "secrets"),
        "module": ("kernels.py", "secret.py"),
    }[link]
    (tree / f"{root}{name}").unlink(missing_ok=True)
    (tree / f"{root}{name}").symlink_to(outside / to)
    with pytest.raises(BuildError, match=r"kernels.* is a link that leads out of the repository"):
        package_sources(tree, Package("kernels"))


def test_a_link_within_a_package_is_followed(tmp_path: Path) -> None:
    tree = write(tmp_path, {"kernels/a.py": "a"})
    (tree / "kernels" / "b.py").symlink_to("a.py")
    assert package_sources(tree, Package("kernels")) == {"kernels/a.py": b"a", "kernels/b.py": b"a"}


@pytest.mark.parametrize("name", ["a\nb.py", "\udcff.py", "\x1b[2J.py"], ids=["newline", "no UTF-8", "escape"])
def test_a_file_of_a_package_with_an_odd_name(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"kernels/__init__.py": ""})
    (tmp_path / "kernels" / name).touch()
    with pytest.raises(BuildError) as caught:
        package_sources(tmp_path, Package("kernels"))
    assert str(caught.value) == f"the file {'kernels/' + name!r} needs another name, of letters and digits"


def test_what_steers_a_build_is_no_source(tmp_path: Path) -> None:
    files = ("build.ninja", "a.cpp", "sitecustomize.py", "torch.py", ".ninja_log", "ccache.conf", "nvcc.profile")
    found = read_sources(write(tmp_path, dict.fromkeys(files, "")), "here", "gemm", Extension("."))
    assert set(found.files) == {"a.cpp"}


@pytest.mark.parametrize(
    "flag",
    [
        "@/etc/passwd",
        "-Wl,@/etc/passwd",
        "-Wa,-g,@/etc/passwd",
        "-Xcompiler=@/etc/passwd",
        "--options-file=/etc/passwd",
    ],
)
def test_a_flag_that_names_a_file_of_options(tmp_path: Path, flag: str) -> None:
    """A compiler says of each word of the file that there is no such option."""
    tree = write(tmp_path, {"a.cpp": ""})
    for flags in ({"flags": [flag]}, {"nvcc_flags": ["-O3", flag]}):
        with pytest.raises(BuildError, match=r"^here: the flag \S+ of the card gemm names a file of options"):
            read_sources(tree, "here", "gemm", Extension("a.cpp", **flags))  # type: ignore[arg-type]


@pytest.mark.parametrize("flag", ["-DAT=a@b", "-Wl,-rpath,$ORIGIN", "-Xptxas=-v", "-DMAIL=@"])
def test_another_flag_is_none(tmp_path: Path, flag: str) -> None:
    assert read_sources(write(tmp_path, {"a.cpp": ""}), "here", "gemm", Extension("a.cpp", flags=[flag])).files


def test_a_filter_that_a_commit_names_does_not_run(tmp_path: Path) -> None:
    """Its attributes name it; what it does stands in a configuration, which is no part of a commit."""
    repo = miniature.repository(tmp_path / "repo", {".gitattributes": "*.cpp filter=own\n", "a.cpp": "as it is\n"})
    write(repo, {".gitconfig": f'[filter "own"]\n  smudge = touch {tmp_path}/ran\n'})
    sha = miniature.commit(repo)
    with git.worktree(repo, sha) as tree:
        assert (tree / "a.cpp").read_text() == "as it is\n"
    assert not (tmp_path / "ran").exists()


def test_an_error_of_a_compiler_is_no_command_to_the_workflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    first = "csrc/a.cpp:1: error: #error ##[add-path]/x\n::set-output name=a::b"
    assert cli._ended(CompileError("head", None, first, tmp_path / "log"), ["build"]) == 1
    said = capfd.readouterr().err
    assert "##[" not in said
    assert "\n::" not in said
    assert "set-output" in said


def test_a_module_in_the_checkout_stands_in_for_no_command_of_an_agent(tmp_path: Path) -> None:
    (tmp_path / "kernelgate.py").write_text("raise SystemExit('the wrong one')\n", encoding="utf-8")
    done = subprocess.run([*mcp_server.PROGRAM, "policy"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "the wrong one" in done.stderr) == (0, False)


def test_a_module_in_the_checkout_stands_in_for_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sitecustomize", "usercustomize", "torch", "json", "pydantic", "kernelgate"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')\n", encoding="utf-8")
    (tmp_path / cards.FOLDER).mkdir(parents=True)
    (tmp_path / cards.FOLDER / "one.py").write_text("no card\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    [mistake] = cards.read(Path(cards.FOLDER)).mistakes
    assert "SyntaxError" in str(mistake)
