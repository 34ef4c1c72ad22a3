"""The Python that loads torch, cards and kernels: kernelgate's own, or the project's own with its torch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import util
from pathlib import Path

from pydantic import BaseModel

import kernelgate
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.system import beside

PATIENCE_S = 60.0
OLDEST, OLDEST_PYDANTIC = (3, 11), (2, 9)
ROOT = Path(kernelgate.__file__).resolve().parent.parent
"""Where `import kernelgate` finds this very copy."""
_chosen: ContextVar[Path | None] = ContextVar("python", default=None)


class Installed(BaseModel, defer_build=True):
    """What a Python has, as beside.py says it."""

    version: tuple[int, int]
    words: str
    """All that it says of its version."""
    include: Path
    torch: tuple[Path, str] | None
    """Its folder and version."""
    tvm_ffi: tuple[Path, str] | None
    triton: str | None
    pydantic: str | None
    lacks: frozenset[str]
    """Of what workers import beside torch."""


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
    python = _chosen.get()
    return Installed.model_validate(beside.installed()) if python is None else _asked(python)


def command(python: Path, module: str, *words: str | Path) -> list[str | Path]:
    """Runs the `main` of a module of kernelgate. In kernelgate's own Python it is found by PYTHONPATH."""
    if python == Path(sys.executable):  # -P: a folder named `bench` in the current directory must not stand in for ours
        return [python, "-P", "-m", module, *words]
    specs = {name: util.find_spec(name) for name in beside.NEEDED}
    places = {name: Path(spec.origin).parent for name, spec in specs.items() if spec is not None and spec.origin}
    folders = {name: str(place.parent if place.name == name else place) for name, place in places.items()}
    return [python, beside.__file__, str(ROOT), json.dumps(folders), module, *words]


@cache
def _asked(python: Path) -> Installed:
    no_python, words = f"{python} is no Python that can be run", [str(python), beside.__file__]
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
        )
        return Installed.model_validate_json(done.stdout.splitlines()[-1])  # it may print as it starts
    except subprocess.TimeoutExpired:
        raise UsageError(f"{python} did not say within {PATIENCE_S:g} s what is installed there") from None
    except OSError as error:
        raise UsageError(f"{no_python}: {error.strerror}") from None
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise UsageError(f"{no_python}: {last[:200]}") from None


def _usable(python: Path) -> None:
    """Raises UsageError, which says what to install there, where workers could not run."""
    there = _asked(python)
    if there.version < OLDEST:
        named, oldest = (".".join(map(str, version)) for version in (there.version, OLDEST))
        raise UsageError(f"{python} is Python {named}; kernels are measured in Python {oldest} or newer")
    missing = [name for name, has in (("torch", there.torch), ("numpy", "numpy" not in there.lacks)) if not has]
    if there.pydantic is None and there.version != sys.version_info[:2]:  # its compiled part is of one version
        missing.append("pydantic")
    elif there.pydantic and tuple(map(int, there.pydantic.split(".")[:2])) < OLDEST_PYDANTIC:
        missing.append(f'"pydantic>={".".join(map(str, OLDEST_PYDANTIC))}"')
    if missing:
        raise UsageError(f"{python} lacks what is needed to measure there: {python} -m pip install {' '.join(missing)}")
