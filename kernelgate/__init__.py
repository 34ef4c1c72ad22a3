"""The one name under which kernelgate is installed: `kernelgate.bench` measures, `kernelgate.ci` judges and reports.

A card takes what it is written with from here: `from kernelgate import Extension, Kernel` (docs/cards.md). In a
checkout `bench` and `ci` are links to the folders at the top of the repository; an installed copy has both inside.
"""

from kernelgate.bench.build.sources import Extension, Package
from kernelgate.bench.kernel.card import Kernel, Output, between

__all__ = ["Extension", "Kernel", "Output", "Package", "between"]
