"""The one name under which kernelgate is installed: `kernelgate.bench` measures, `kernelgate.ci` judges and reports.

A card takes what it is written with from here: `from kernelgate import Extension, Kernel` (docs/cards.md), and a script
`kernelgate.paired`, which times two functions and is loaded, with torch, when it is asked for. In a
checkout `bench` and `ci` are links to the folders at the top of the repository; an installed copy has both inside.
"""

from typing import TYPE_CHECKING, Any

from kernelgate.bench.build.sources import Command, Extension, Package
from kernelgate.bench.kernel.card import Kernel, Output, between

if TYPE_CHECKING:
    from kernelgate.ci.pipeline.paired import paired as paired

__all__ = ["Command", "Extension", "Kernel", "Output", "Package", "between", "paired"]


def __getattr__(name: str) -> Any:
    if name == "paired":
        from kernelgate.ci.pipeline.paired import paired

        return paired
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
