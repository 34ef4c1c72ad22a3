"""Packaging: a wheel holds the tool alone, without compiled code; `python setup.py build_ext --inplace` compiles the
included kernel as `kernelgate build` does, and puts it into the package fa_s512 of the checkout."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError

ROOT = Path(__file__).parent.resolve()
CARD = ROOT / ".ci" / "kernels" / "attention.py"
PACKAGE = "fa_s512"
IN_PLACE = ROOT / "csrc" / PACKAGE


class BuildTool(build_py):
    def run(self) -> None:
        if not self.editable_mode:
            self.packages.remove(PACKAGE)
        super().run()


class BuildKernel(build_ext):
    def run(self) -> None:
        if not self.inplace:
            raise CompileError("the kernel is compiled in the checkout: python setup.py build_ext --inplace")
        sys.path.insert(0, str(ROOT))
        # Here, because an install has nothing but setuptools when it starts.
        try:
            from kernelgate.bench.core import files
            from kernelgate.bench.core.errors import KernelgateError
            from kernelgate.bench.kernel import commit
        except ModuleNotFoundError as error:
            raise CompileError(_lacks(error)) from None

        target = IN_PLACE / "kernel.so"
        try:
            built = commit.build_tree(ROOT, commit.HowToBuild(namespace=PACKAGE)).built[CARD.stem]
            # In one step, for a process may have the old one mapped; and always, for a cached one is older than it.
            files.write(target, built.path.read_bytes())
        except KernelgateError as error:
            raise CompileError(str(error)) from error
        print(f"{target} is there; {_how_to_import()}")


def _how_to_import() -> str:
    """Whether this Python imports the package from the checkout, as after `make env`, or what lets it."""
    found = importlib.util.find_spec(PACKAGE)
    if found and found.origin and Path(found.origin).resolve().parent == IN_PLACE:
        return "import fa_s512 loads it"
    return f"import fa_s512 loads it in an editable install (make env), or with PYTHONPATH={IN_PLACE.parent}"


def _lacks(error: ModuleNotFoundError) -> str:
    return f"this Python lacks {error.name}: run this with the Python that `make env` makes"


try:
    from vcs_versioning import PyProjectData, infer_version_string
except ModuleNotFoundError as lacking:
    sys.exit(f"error: {_lacks(lacking)}")

VERSION = infer_version_string("kernelgate", PyProjectData.from_file(ROOT / "pyproject.toml"))
setup(version=VERSION, cmdclass={"build_ext": BuildKernel, "build_py": BuildTool})
