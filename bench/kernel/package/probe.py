"""Which torch operators a package registers when it is imported.

python -m kernelgate.bench.kernel.package.probe FOLDER NAME prints them as a JSON list of "my_ops::scale". Two packages
that register one name cannot share a process: torch gives both of them the operator that came last.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel.package import importer as package_import

SIDE = "probe"


def watch(alias: str) -> Callable[[], tuple[str, ...]]:
    """From now on notes what a package registers, and gives the function that tells, without the names of overloads.

    torch registers operators of its own when parts of it are first imported; they are left out.
    """
    before = _known()
    others: set[str] = set()
    define = torch.library.Library.define

    def noted(library: Any, schema: str, *args: Any, **kwargs: Any) -> Any:
        if not package_import.called_by(alias):
            others.add(f"{library.ns}::{schema.partition('(')[0].partition('.')[0].strip()}")
        return define(library, schema, *args, **kwargs)  # type: ignore[no-untyped-call]

    torch.library.Library.define = noted  # type: ignore[method-assign, assignment]
    return lambda: tuple(sorted(_known() - before - others))


def operators(folder: Path, name: str) -> tuple[str, ...]:
    """What importing the package registers, in a process that does nothing else. Raises PackageImportError."""
    found = watch(package_import.alias_of(name, SIDE))
    package_import.load(folder, name, SIDE)
    return found()


def _known() -> frozenset[str]:
    return frozenset(name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names())


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a package prints must not mix with the answer
    sys.dont_write_bytecode = True  # the folder is a library's
    try:
        found = operators(Path(sys.argv[1]), sys.argv[2])
    except KernelgateError as error:
        sys.exit(str(error))
    json.dump(found, out)
    out.close()


if __name__ == "__main__":
    main()
