"""Packaging: `pip install .` compiles the kernel as `kernelgate build` does, and puts it into the package fa_s512.

The library is loaded by torch and knows nothing of Python, so one wheel serves every Python. An editable install
compiles nothing: there the build cache serves.
"""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

ROOT = Path(__file__).parent.resolve()
CARD = ROOT / ".ci" / "kernels" / "attention.py"
SOURCES = (".cpp", ".cu", ".cuh", ".h")


class BuildKernel(build_ext):
    def run(self) -> None:
        if self.editable_mode:
            return
        sys.path.insert(0, str(ROOT))  # an isolated build does not see the checkout
        # Here, because an editable install has nothing but setuptools when it starts.
        from kernelgate.bench.errors import KernelgateError
        from kernelgate.bench.kernel import commit

        try:
            built = commit.build_tree(ROOT, commit.HowToBuild(namespace="fa_s512")).built[CARD.stem]
        except KernelgateError as error:
            raise CompileError(str(error)) from error
        target = Path(*self.get_outputs())
        self.mkpath(str(target.parent))
        self.copy_file(str(built.path), str(target))

    def get_outputs(self) -> list[str]:
        return [] if self.editable_mode else [str(Path(self.build_lib) / "fa_s512" / "kernel.so")]

    def get_output_mapping(self) -> dict[str, str]:
        return {}

    def get_source_files(self) -> list[str]:
        """For the source distribution."""
        sources = (path for path in (ROOT / "csrc").rglob("*") if path.suffix in SOURCES)
        return sorted(str(path.relative_to(ROOT)) for path in (*sources, CARD))


class PlatformWheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(
    ext_modules=[Extension("fa_s512.kernel", sources=[])],
    cmdclass={"build_ext": BuildKernel, "bdist_wheel": PlatformWheel},
)
