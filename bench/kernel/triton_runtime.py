"""Triton while kernels are measured: the kernels that the build compiled, and what @triton.autotune makes of a kernel.

A kernel with several configurations times all of them when it first meets a key, such as a shape, and keeps the
fastest. Two sides, or two processes, that choose differently look like a difference of their kernels.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from kernelgate.bench.build.library import CACHE
from kernelgate.bench.kernel import fuzz_trials
from kernelgate.bench.kernel.axes import AxisValue
from kernelgate.bench.system import lock

VARIABLE = "TRITON_CACHE_DIR"


CompiledSince = Callable[[], tuple[str, ...]]
"""The kernels that were compiled although the builds had made others: what no case of a build needed."""


@contextmanager
def shared(libraries: Sequence[Path]) -> Iterator[CompiledSince]:
    """Until the block ends, Triton has what these libraries' builds compiled. Nothing happens for extensions."""
    if not (caches := [folder / CACHE for folder in libraries if (folder / CACHE).is_dir()]):
        yield tuple
        return
    before = os.environ.get(VARIABLE)
    with lock.temporary_folder("kernelgate-triton-") as folder:
        filled = fill(folder, caches)
        os.environ[VARIABLE] = str(folder)
        try:
            yield filled
        finally:
            os.environ.pop(VARIABLE)
            if before is not None:
                os.environ[VARIABLE] = before


def fill(folder: Path, caches: Iterable[Path]) -> CompiledSince:
    """Puts copies of libraries' kernels in `folder`, which becomes TRITON_CACHE_DIR. What has one key was compiled from
    the same source in the same way; the first library's is taken: a head cannot bring another kernel for its base."""
    for entry in (path for cache in caches for path in sorted(cache.iterdir()) if path.is_dir()):
        copy = folder.absolute() / entry.name
        if not copy.exists():
            shutil.copytree(entry, copy)
            for listing in copy.glob("__grp__*.json"):
                names = json.loads(listing.read_bytes())["child_paths"]
                listing.write_text(json.dumps({"child_paths": {name: str(copy / name) for name in names}}))
    known = frozenset(folder.glob("*/*.cubin"))
    return lambda: tuple(sorted({path.stem for path in folder.glob("*/*.cubin") if path not in known}))


def tuners() -> list[Any]:
    """The autotuned kernels that the garbage collector lists: once it is frozen, those that were made since."""
    if "triton" not in sys.modules:
        return []
    from triton.runtime.autotuner import Autotuner

    # Kernels that a function or a class made are no attributes of a module.
    return [one for one in gc.get_objects() if issubclass(type(one), Autotuner) and len(one.configs) > 1]


def choices(tuners: Iterable[Any], ops: Any) -> dict[tuple[str, Any], str]:
    """What those of a package run with, by kernel and tuning key: "BLOCK=1024, warps=8, stages=3"."""
    package = getattr(ops, "__name__", "").partition(".")[0]
    of_package = (one for one in tuners if one.base_fn.__module__.partition(".")[0] == package)
    return {(one.base_fn.__name__, key): describe(config) for one in of_package for key, config in _cached(one).items()}


def _cached(tuner: Any) -> Mapping[Any, Any]:
    """The configurations by key. A subclass may keep them elsewhere, as FlagGems' does: then the last that ran."""
    if isinstance(tuner.cache, Mapping):
        return dict(tuner.cache)
    best = getattr(tuner, "best_config", None)
    return {} if best is None else {str(best): best}


def describe(config: Any) -> str:
    """A triton.Config in short: "BLOCK=1024, warps=8, stages=3"."""
    words = {**config.kwargs, "warps": config.num_warps, "stages": config.num_stages}
    if config.num_ctas != 1:
        words["ctas"] = config.num_ctas
    if config.maxnreg is not None:
        words["maxnreg"] = config.maxnreg
    return ", ".join(f"{name}={value}" for name, value in words.items())


def every_config(before: Callable[[str | None], None], turn: float = 0.0) -> AbstractContextManager[None]:
    """While the block runs, an autotuned kernel runs with each of its configurations, and measures none. `before` is
    told it; None where there is only one, and after the last. One that cannot be compiled is left out, as Triton leaves
    it out; where none can, the first one's error is raised. `turn`: which comes first, as a share of them: of several
    processes each compiles others, and finds the rest in the cache."""
    return _instead_of_tuning(lambda _, count: int(turn * count), before)


def one_config(case: Mapping[str, AxisValue]) -> AbstractContextManager[None]:
    """While the block runs, an autotuned kernel runs with one configuration that the case decides, or the next that can
    run: for checks, where over many cases all of them come up without the time to measure each. However the case is
    called, and whatever its values, it is that which the build has compiled."""
    name = fuzz_trials.case_id(case)
    return _instead_of_tuning(lambda kernel, count: zlib.crc32(f"{name}/{kernel}".encode()) % count, None)


def untuned(case: Mapping[str, AxisValue]) -> AbstractContextManager[None]:
    """`one_config`, where Triton is loaded."""
    return one_config(case) if "triton" in sys.modules else nullcontext()


@contextmanager
def _instead_of_tuning(first: Callable[[str, int], int], before: Callable[[str | None], None] | None) -> Iterator[None]:
    """Runs a kernel with all of its configurations, or until one runs where nobody is told `before`. `first`: which one
    it begins with, by its name and how many there are."""
    from triton.compiler.errors import CompileTimeAssertionFailure
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.errors import OutOfResources, PTXASError

    def tune(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))  # by these prune_configs drops some
        pruned = tuner.prune_configs(kwargs) if len(tuner.configs) > 1 else tuner.configs
        configs = pruned or tuner.configs
        at = first(tuner.base_fn.__name__, len(configs))
        results, errors = [], []
        for config in (*configs[at:], *configs[:at]):
            if before:
                before(describe(config) if len(configs) > 1 else None)
            values = config.all_kwargs()
            try:
                if config.pre_hook is not None:
                    config.pre_hook({**tuner.nargs, **kwargs, **values})
                tuner.best_config = config
                results.append(tuner.fn.run(*args, **kwargs, **values))
            except (OutOfResources, CompileTimeAssertionFailure, PTXASError) as error:  # not possible here, to Triton
                errors.append(error)
            if results and not before:
                break
        if before:
            before(None)
        tuner.nargs = None
        if not results:
            raise errors[0]
        return results[-1]

    tuning = {one: one.run for one in _classes(Autotuner) if "run" in vars(one)}
    for one in tuning:
        one.run = tune
    try:
        yield
    finally:
        for one, run in tuning.items():
            one.run = run


def _classes(of: type[Any]) -> Iterator[type[Any]]:
    yield of
    for one in of.__subclasses__():
        yield from _classes(one)
