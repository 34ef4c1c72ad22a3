"""Run as a file by another Python than kernelgate's own, of any version from 3.8 on: says what is installed there, or
runs a module of this very copy of kernelgate in it. Imports nothing but the standard library.

What the Python has itself comes first; only what it lacks, it gets from kernelgate's own Python.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
import sysconfig
from importlib import metadata, util
from importlib.machinery import PathFinder
from typing import Any

NEEDED = ("pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection", "pynvml")
"""What a worker imports beside torch and numpy."""


def installed() -> dict[str, Any]:
    """What kernelgate must know of this Python, without importing any of it."""
    return {
        "version": list(sys.version_info[:2]),
        "words": sys.version,
        "include": sysconfig.get_paths()["include"],
        "torch": _folder_and_version("torch", "torch"),
        "tvm_ffi": _folder_and_version("tvm_ffi", "apache-tvm-ffi"),
        "triton": triton_version(),
        "pydantic": version("pydantic"),
        "lacks": [name for name in (*NEEDED, "numpy") if util.find_spec(name) is None],
    }


def _folder_and_version(name: str, distribution: str) -> list[str] | None:
    spec, known = util.find_spec(name), version(distribution)
    return [spec.submodule_search_locations[0], known] if spec and spec.submodule_search_locations and known else None


def version(distribution: str) -> str | None:
    """Of an installed package, without importing it."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def triton_version() -> str | None:
    """The installed Triton, such as "3.9.0-1f0c8d2e9a7b"; None without one. It ends in a hash of its files, for Triton
    finds in a cache what the very same files compiled: a wheel for another version of Python is another Triton."""
    try:
        triton = metadata.distribution("triton")
    except metadata.PackageNotFoundError:
        return None
    hashes = sorted(f"{path} {path.hash.value}" for path in triton.files or () if path.hash and "triton" in path.parts)
    return f"{triton.version}-{hashlib.sha256(' '.join(hashes).encode()).hexdigest()[:12]}"


class Found:
    """Finds some modules, each in a folder of its own, and no others."""

    def __init__(self, folders: dict[str, str]) -> None:
        self.folders = folders

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002 - as importlib calls it
        folder = self.folders.get(name)
        return None if folder is None else PathFinder.find_spec(name, [folder])


def main() -> None:
    """ROOT FOLDERS MODULE WORDS…: runs the module's `main`; without any of them prints what is installed."""
    sys.path.pop(0)  # this file's own folder
    if len(sys.argv) == 1:
        print(json.dumps(installed()))
        return
    _, root, folders, module, *words = sys.argv
    sys.argv[:] = [module, *words]
    sys.meta_path.insert(0, Found({"kernelgate": root}))
    sys.meta_path.append(Found(json.loads(folders)))
    importlib.import_module(module).main()


if __name__ == "__main__":
    main()
