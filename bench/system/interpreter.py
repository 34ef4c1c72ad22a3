"""The Python that loads torch, cards and kernels: kernelgate's own, or the project's own with its torch."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any

import kernelgate
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.system import beside

PATIENCE_S = 60.0
OLDEST = (3, 11)
OLDEST_PYDANTIC = (2, 9)
ROOT = Path(kernelgate.__file__).resolve().parent.parent
"""Where `import kernelgate` finds this very copy."""
_chosen: ContextVar[Path | None] = ContextVar("python", default=None)


@dataclass(frozen=True)
class Installed:
    """What a Python has."""

    words: str
    """All that it says of its version."""
    include: Path
    torch: tuple[Path, str] | None
    """Its folder and version."""
    tvm_ffi: tuple[Path, str] | None
    triton: str | None


def current() -> Path:
    """The one that what is built and started now belongs to."""
    return _chosen.get() or Path(sys.executable)


def is_named() -> bool:
    """Whether it is another than kernelgate's own."""
    return _chosen.get() is not None


@contextmanager
def using(python: Path | None) -> Iterator[None]:
    """Until the block ends, workers and builds are of this Python; None changes nothing. Raises UsageError where it
    cannot be used."""
    if python is None:
        yield
        return
    _usable(python)
    token = _chosen.set(python)
    try:
        yield
    finally:
        _chosen.reset(token)


def installed() -> Installed:
    """Of the current one."""
    python = _chosen.get()
    told = beside.installed() if python is None else _asked(python)

    def found(name: str) -> tuple[Path, str] | None:
        folder, version = told[name]
        return None if folder is None or version is None else (Path(folder), version)

    return Installed(told["words"], Path(told["include"]), found("torch"), found("tvm_ffi"), told["triton"])


def slow_start(variables: Mapping[str, str] = os.environ) -> tuple[str, str] | None:
    """Why each process loads torch two or three times as slowly as it could, and what helps; None where it does not.
    pip compiles what it installs to bytecode, uv does not, and under PYTHONDONTWRITEBYTECODE nobody does."""
    torch = installed().torch
    if torch is None or "PYTHONPYCACHEPREFIX" in variables or list(torch[0].glob("__pycache__/__init__.*.pyc")):
        return None
    fix = shlex.join([str(current()), "-m", "compileall", "-q", "-j", "0", str(torch[0].parent)])
    return f"torch {torch[1]} is not compiled to bytecode, so that every process starts seconds later", fix


def command(python: Path, module: str, *words: str | Path) -> list[str | Path]:
    """Runs the `main` of a module of kernelgate. In kernelgate's own Python it is found by PYTHONPATH."""
    if python == Path(sys.executable):  # -P: a folder named `bench` in the current directory must not stand in for ours
        return [python, "-P", "-m", module, *words]
    specs = {name: util.find_spec(name) for name in beside.NEEDED}
    places = {name: Path(spec.origin).parent for name, spec in specs.items() if spec is not None and spec.origin}
    folders = {name: str(place.parent if place.name == name else place) for name, place in places.items()}
    return [python, beside.__file__, str(ROOT), json.dumps(folders), module, *words]


@cache
def _asked(python: Path) -> dict[str, Any]:
    try:
        words = [str(python), beside.__file__]
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"{python} did not say within {PATIENCE_S:g} s what is installed there") from None
    except OSError as error:
        raise UsageError(f"{python} is no Python that can be run: {error.strerror}") from None
    try:
        told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])  # it may print as it starts
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise UsageError(f"{python} is no Python that can be run: {last[:200]}") from None
    return told


def _usable(python: Path) -> None:
    """Raises UsageError, which says what to install there, where workers could not run."""
    told = _asked(python)
    version, lacks, pydantic = tuple(told["version"]), set(told["lacks"]), told["pydantic"]
    named = ".".join(map(str, version))
    if version < OLDEST:
        raise UsageError(
            f"{python} is Python {named}; kernels are measured in Python {'.'.join(map(str, OLDEST))} or newer"
        )
    missing = [name for name, there in (("torch", told["torch"][0]), ("numpy", "numpy" not in lacks)) if not there]
    if pydantic is None and version != sys.version_info[:2]:  # its compiled part is of one version of Python
        missing.append("pydantic")
    elif isinstance(pydantic, str) and tuple(map(int, pydantic.split(".")[:2])) < OLDEST_PYDANTIC:
        missing.append(f'"pydantic>={".".join(map(str, OLDEST_PYDANTIC))}"')
    if missing:
        raise UsageError(f"{python} lacks what is needed to measure there: {python} -m pip install {' '.join(missing)}")
