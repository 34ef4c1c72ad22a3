"""The one name under which kernelgate is installed: `kernelgate.bench` measures, `kernelgate.ci` judges and reports.

A card takes what it is written with from here: `from kernelgate import Extension, Kernel` (docs/cards.md), and a script
`kernelgate.paired`, which times two functions, with torch. All of it is loaded when it is asked for. In a
checkout `bench` and `ci` are links to the folders at the top of the repository; an installed copy has both inside.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

TYPE_CHECKING = False  # as in typing, for which another file may stand in
if TYPE_CHECKING:
    from typing import Any

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


def stand_in(error: BaseException) -> str:
    """What to say where a file on PYTHONPATH took the place of a module of Python's or of a package that kernelgate
    needs, and so led to this error; empty where none did."""
    needed = "anyio click fsspec github jinja2 mcp numpy pydantic requests rich scipy sqlalchemy torch triton zstandard"
    names = {*sys.stdlib_module_names, *needed.split()}
    files = [getattr(one, "filename", getattr(one, "__file__", None)) for one in (error, *map(sys.modules.get, names))]
    step = error.__traceback__
    while step:
        files.append(step.tb_frame.f_code.co_filename)
        step = step.tb_next
    places = (os.path.abspath(one) for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one)  # noqa: PTH100
    found = {f"{place}/{name}.py" for place in places for name in names}.intersection(map(str, files))
    for file in found:
        return f"PYTHONPATH puts {file} in the place of a needed module: rename it, or unset PYTHONPATH"
    return ""


def main() -> None:
    """The `kernelgate` command, which is loaded where what ends it is a sentence, and not a traceback."""
    try:
        import_module(f"{__name__}.ci.commands.cli").main()
    except (Exception, KeyboardInterrupt) as error:
        code, said = (130, "interrupted") if isinstance(error, KeyboardInterrupt) else (3, stand_in(error))
        if not said:
            raise
        print(f"kernelgate: {said}", file=sys.stderr)
        sys.exit(code)
