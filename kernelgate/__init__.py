"""The one name under which kernelgate is installed: `kernelgate.bench` measures, `kernelgate.ci` judges and reports.

A card takes what it is written with from here: `from kernelgate import Extension, Kernel` (docs/cards.md). In a
checkout both packages lie at the top of the repository, beside this folder; an installed copy has them inside it.
"""

from pathlib import Path

_HERE = Path(__file__).resolve().parent
if not (_HERE / "bench").is_dir():
    __path__.append(str(_HERE.parent))

from kernelgate.bench.kernel.card import Extension, Kernel, Output, Package, between  # noqa: E402 - after the path

__all__ = ["Extension", "Kernel", "Output", "Package", "between"]
