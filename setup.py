"""Packaging: `pip install .` compiles the kernel as `kernelgate build` does, and puts it into the package fa_s512.

The library is loaded by torch and knows nothing of Python, so one wheel serves every Python. An editable install
compiles nothing: there the build cache serves, and `python setup.py build_ext --inplace` puts the library beside the
package's sources.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

ROOT = Path(__file__).parent.resolve()
CARD = ROOT / ".ci" / "kernels" / "attention.py"
IN_PLACE = Path("csrc", "fa_s512")
SOURCES = (".cpp", ".cu", ".cuh", ".h")


class BuildKernel(build_ext):
    def run(self) -> None:
        if self.editable_mode:
            return
        sys.path.insert(0, str(ROOT))  # an isolated build does not see the checkout
        # Here, because an editable install has nothing but setuptools when it starts.
        try:
            from kernelgate.bench.core import files
            from kernelgate.bench.core.errors import KernelgateError
            from kernelgate.bench.kernel import commit
        except ModuleNotFoundError as error:
            fix = "run this with the Python that `make env` makes, or run `pip install .`, which brings what it needs"
            raise CompileError(f"this Python lacks {error.name}: {fix}") from None

        target = Path(*self.get_outputs())
        try:
            built = commit.build_tree(ROOT, commit.HowToBuild(namespace="fa_s512")).built[CARD.stem]
            # In one step, for a process may have the old one mapped; and always, for a cached one is older than it.
            files.write(target, built.path.read_bytes())
        except KernelgateError as error:
            raise CompileError(str(error)) from error
        if self.inplace:
            print(f"{target} is there; {_how_to_import()}")

    def get_outputs(self) -> list[str]:
        folder = ROOT / IN_PLACE if self.inplace else Path(self.build_lib, "fa_s512")
        return [] if self.editable_mode else [str(folder / "kernel.so")]

    def get_output_mapping(self) -> dict[str, str]:
        return {}

    def get_source_files(self) -> list[str]:
        """For the source distribution."""
        sources = (path for path in (ROOT / "csrc").rglob("*") if path.suffix in SOURCES)
        return sorted(str(path.relative_to(ROOT)) for path in (*sources, CARD))


def _how_to_import() -> str:
    """Whether this Python imports the package from the checkout, as after `make env`, or what lets it."""
    found = importlib.util.find_spec("fa_s512")
    if found and found.origin and Path(found.origin).resolve().parent == ROOT / IN_PLACE:
        return "import fa_s512 loads it"
    return f"import fa_s512 loads it in an editable install (make env), or with PYTHONPATH={ROOT / IN_PLACE.parent}"


class PlatformWheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(
    ext_modules=[Extension("fa_s512.kernel", sources=[])],
    cmdclass={"build_ext": BuildKernel, "bdist_wheel": PlatformWheel},
)
