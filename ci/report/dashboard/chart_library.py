"""uPlot, which draws the series: from npm, at the version of package-lock.json, never kept in the repository."""

from __future__ import annotations

import json
from pathlib import Path

from kernelgate.bench.core.errors import KernelgateError

HERE = Path(__file__).parent
FILES = {"dist/uPlot.iife.min.js": "uplot.js", "dist/uPlot.min.css": "uplot.css", "LICENSE": "uplot.LICENSE"}
"""The files of the package that a site needs, and what they are called there."""


class ChartLibraryError(KernelgateError):
    """uPlot is not installed, or in another version."""


def files(folder: Path | None) -> dict[str, str]:
    """uPlot's files by their names in a site: from `folder`, else from beside this module or the working folder.

    Raises ChartLibraryError, which says how to install it.
    """
    wanted = version()
    places = [folder] if folder else [HERE / "node_modules/uplot", Path("node_modules/uplot")]
    found = next((place for place in places if (place / "package.json").is_file()), None)
    how = f"`npm install --ignore-scripts --no-save uplot@{wanted}` puts it into ./node_modules"
    if found is None:
        raise ChartLibraryError(f"no uPlot in {' or '.join(map(str, places))}, which draws the charts: {how}")
    try:
        have = json.loads((found / "package.json").read_text(encoding="utf-8"))["version"]
        read = {name: (found / file).read_text(encoding="utf-8") for file, name in FILES.items()}
    except (OSError, ValueError, KeyError, TypeError):
        raise ChartLibraryError(f"the uPlot in {found} is not whole: {how}") from None
    if have != wanted:
        raise ChartLibraryError(f"the uPlot in {found} is version {have}, not {wanted}: {how}")
    return read


def version() -> str:
    """The one that the lock file names."""
    lock = json.loads((HERE / "package-lock.json").read_text(encoding="utf-8"))
    named: str = lock["packages"]["node_modules/uplot"]["version"]
    return named
