"""The one name under which kernelgate is installed: `kernelgate.bench` measures, `kernelgate.ci` judges and reports.

A card takes what it is written with from here: `from kernelgate import Extension, Kernel` (docs/cards.md), and a script
`kernelgate.paired`, which times two functions, with torch. All of it is loaded when it is asked for. In a
checkout `bench` and `ci` are links to the folders at the top of the repository; an installed copy has both inside.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelgate.bench.build.sources import Command, Extension, Package
    from kernelgate.bench.kernel.card import Kernel, Output, between
    from kernelgate.ci.pipeline.paired import paired

__all__ = ["Command", "Extension", "Kernel", "Output", "Package", "between", "paired"]
_FROM = {
    "bench.build.sources": ("Command", "Extension", "Package"),
    "bench.kernel.card": ("Kernel", "Output", "between"),
    "ci.pipeline.paired": ("paired",),
}


def __getattr__(name: str) -> Any:
    for module, names in _FROM.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main() -> None:
    """The `kernelgate` command, which is loaded where an interrupt ends in a sentence, and not in a traceback."""
    try:
        import_module(f"{__name__}.ci.commands.cli").main()
    except KeyboardInterrupt:
        print("kernelgate: interrupted", file=sys.stderr)
        sys.exit(130)
