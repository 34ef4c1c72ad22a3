"""Finds the compilers, headers and libraries of this machine, on PATH or in the PyPI packages."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import tempfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kernelgate.bench.build.compiler_output import broke_down, was_ended
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import CannotCompileError, OutputError
from kernelgate.bench.system import cuda_tools, interpreter, supervise
from kernelgate.bench.system.supervise import TimeLimits

PATIENCE_S = 30.0
"""For a compiler to say its version."""
LINKS = Path("..", "tools")
"""Links to this machine's headers and libraries, as seen from the folder beside them in which sources are compiled: no
path of this machine gets into a library that way."""


@dataclass(frozen=True)
class Installed:
    """The headers and libraries of TVM-FFI, and of what follows."""

    include: Path
    lib: Path
    version: str


@dataclass(frozen=True)
class Torch(Installed):
    """torch itself is never imported, which would take seconds."""

    python_include: Path
    """Of this Python's own headers, for sources that include torch/extension.h."""
    wheels: tuple[Path, ...] = ()
    """Headers of CUDA's libraries that were installed with torch, such as cuSPARSE's, which ATen's include."""


@dataclass(frozen=True)
class Cuda(Installed):
    nvcc: Path


@dataclass(frozen=True)
class Toolchain:
    gxx: Path
    gxx_version: str
    ninja: Path
    ccache: Path | None
    torch: Torch
    cuda: Cuda | None
    cuda_missing: str
    """What this machine lacks to compile for a GPU; empty where `cuda` is there."""
    tvm_ffi: Installed | None = None
    """For sources that export functions through it; None where it is not installed."""


NVCC_HOST = Path("host", "g++")
"""Below LINKS: the C++ compiler that nvcc calls."""
NVCC_HOST_SCRIPT = """\
#!/bin/sh
{gxx} "$@" || exit
case " $* " in *" -E "*) ;; *) exit 0 ;; esac
while [ $# -gt 1 ]; do
  [ "$1" = -o ] && exec sed -i 's|^\\(# [0-9]* "\\)\\.\\./{links}/|\\1/{links}/|' "$2"
  shift
done
"""
"""g++, whose preprocessed output names the environment's headers where there are none: of a header that it finds, ptxas
writes into line tables when that was installed."""


def breakdown(code: int, said: Iterable[str], work: Path) -> str | None:
    """What kept this machine from compiling in the folder `work`, by the exit code and lines of the output; None where
    a failed build is its author's fault."""
    if was_ended(code):
        return f"it was ended by {signal.Signals(-code if code < 0 else code - 128).name}"
    if (line := next(filter(broke_down, said), None)) is not None:
        return line.strip()
    for folder in (work, Path(tempfile.gettempdir())):
        try:
            files.try_folder(folder)
        except OutputError as full:
            return str(full)
    return None


def find() -> Toolchain:
    """This machine's toolchain. Raises CannotCompileError naming what not even a CPU library can do without."""
    if (gxx := on_path("g++")) is None:
        raise CannotCompileError("no C++ compiler: g++ is not on PATH; install it (apt-get install g++)")
    if (ninja := on_path("ninja")) is None:
        raise CannotCompileError("ninja is neither on PATH nor beside Python; install it (pip install ninja)")
    there = interpreter.installed()
    if there.torch is None:
        missing = "torch's headers are missing: torch is not installed beside this Python"
        raise CannotCompileError(f"{missing}; {interpreter.current()} -m pip install torch")
    root, version = there.torch
    wheels = tuple(sorted(root.parent.glob("nvidia/*/include")))
    torch = Torch(root / "include", root / "lib", version, there.include, wheels)
    ffi = there.tvm_ffi and Installed(there.tvm_ffi[0] / "include", there.tvm_ffi[0] / "lib", there.tvm_ffi[1])
    cuda, cuda_missing = _find_cuda()
    return Toolchain(gxx, _version(gxx), ninja, on_path("ccache"), torch, cuda, cuda_missing, ffi)


def link(toolchain: Toolchain, tree: Path) -> None:
    """Makes LINKS, for sources that are compiled in `tree`."""
    folder = tree.parent / LINKS.name
    every = {"torch": toolchain.torch, "cuda": toolchain.cuda, "tvm_ffi": toolchain.tvm_ffi}
    links = {"python/include": toolchain.torch.python_include}
    for name, one in every.items():
        links |= {f"{name}/include": one.include, f"{name}/lib": one.lib} if one else {}
    links |= {f"wheels/{path.parent.name}": path for path in toolchain.torch.wheels}
    if toolchain.cuda:
        links["cuda/bin"] = toolchain.cuda.nvcc.parent
    for name, path in links.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(path.absolute())
    host = folder / NVCC_HOST
    host.parent.mkdir()
    host.write_text(NVCC_HOST_SCRIPT.format(gxx=shlex.quote(str(toolchain.gxx)), links=LINKS.name), encoding="utf-8")
    host.chmod(0o755)
    version = zlib.crc32(toolchain.gxx_version.encode())
    os.utime(host, (version, version))  # ccache takes a compiler for the one of before by its time


def _find_cuda() -> tuple[Cuda | None, str]:
    """The first complete CUDA installation, or None and what is missing."""
    missing: list[str] = []
    for nvcc in cuda_tools.candidates("nvcc"):
        roots = (nvcc.parent.parent, nvcc.resolve().parent.parent)
        folders = [root / folder for root in roots for folder in ("", "targets/x86_64-linux")]
        include = next((one / "include" for one in folders if (one / "include/cuda_runtime.h").is_file()), None)
        libs = (one / lib for one in folders for lib in ("lib64", "lib"))
        lib = next((one for one in libs if (one / "libcudart_static.a").is_file()), None)
        if include and lib:
            return Cuda(include, lib, _version(nvcc), nvcc), ""
        missing.append(f"{nvcc} has no {'libcudart_static.a' if include else 'cuda_runtime.h'} beside it")
    return None, "; ".join(missing) or cuda_tools.absent("nvcc")


def on_path(name: str) -> Path | None:
    """Beside Python first: a virtual environment's tools count although it was not activated."""
    found = shutil.which(name, path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
    return Path(found) if found else None


def _version(compiler: Path) -> str:
    """All that `--version` prints: it tells compilers apart in the cache. Raises CannotCompileError where it fails."""
    said: list[str] = []
    version, limits = [str(compiler), "--version"], TimeLimits(total_s=PATIENCE_S)
    try:
        code = supervise.run(
            version, cwd=Path.cwd(), env=os.environ, limits=limits, on_line=said.append, on_silence=lambda _: None
        )
    except TimeoutError:
        raise CannotCompileError(f"`{compiler} --version` did not end within {PATIENCE_S:g} s") from None
    except OSError as error:
        raise CannotCompileError(f"{compiler} cannot be run: {error.strerror}") from None
    if code != 0:
        raise CannotCompileError(f"`{compiler} --version` ended with code {code}, so that it cannot compile")
    return "\n".join(said).strip()
