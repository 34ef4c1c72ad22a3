"""What @triton.autotune does to a measurement: which configuration it chose, and ways to run it without measuring.

A kernel with several configurations times all of them when it first meets a key, such as a shape, and keeps the
fastest. Two sides, or two processes, that choose differently look like a difference of their kernels.
"""

from __future__ import annotations

import gc
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

Launch = Callable[[Any], Any]
"""Runs a kernel with one configuration."""


def chosen(ops: Any) -> str:
    """What the autotuned kernels of a package run with in this process, such as "scale: BLOCK=1024, warps=8, stages=3".

    `ops` is the imported package; other operators choose nothing, and give "". A kernel that has not run yet, or has no
    choice, is left out; of one that a call launches with several keys the last choice is given.
    """
    if "triton" not in sys.modules:
        return ""
    from triton.runtime.autotuner import Autotuner

    # Kernels that a function or a class made are no attributes of a module.
    tuners = [one for one in gc.get_objects() if issubclass(type(one), Autotuner)]
    own = [one for one in tuners if one.base_fn.__module__.partition(".")[0] == ops.__name__ and len(one.configs) > 1]
    ran = {f"{one.base_fn.__name__}: {describe(one.best_config)}" for one in own if hasattr(one, "best_config")}
    return "; ".join(sorted(ran))


def describe(config: Any) -> str:
    """A triton.Config in short: "BLOCK=1024, warps=8, stages=3"."""
    words = [*config.kwargs.items(), ("warps", config.num_warps), ("stages", config.num_stages)]
    if config.num_ctas != 1:
        words.append(("ctas", config.num_ctas))
    if config.maxnreg is not None:
        words.append(("maxnreg", config.maxnreg))
    return ", ".join(f"{name}={value}" for name, value in words)


@contextmanager
def every_config(before: Callable[[str | None], None]) -> Iterator[None]:
    """While the block runs, an autotuned kernel runs with each of its configurations, and measures none.

    `before` is told the configuration; None where there is only one, and after the last. A configuration that cannot be
    compiled is left out, as Triton leaves it out; where none can, the first one's error is raised.
    """

    def run(_: str, configs: Sequence[Any], launch: Launch) -> Any:
        result, errors = None, []
        for config in configs:
            before(describe(config) if len(configs) > 1 else None)
            try:
                result = launch(config)
            except _tolerated() as error:
                errors.append(error)
        before(None)
        if len(errors) == len(configs):
            raise errors[0]
        return result

    with _instead_of_tuning(run):
        yield


@contextmanager
def one_config(text: str) -> Iterator[None]:
    """While the block runs, an autotuned kernel runs with one of its configurations that `text` decides.

    For checks: over many texts all configurations come up, without the time that measuring each of them takes. The same
    text gives the same one in every process. A configuration that cannot run gives way to the next.
    """

    def run(kernel: str, configs: Sequence[Any], launch: Launch) -> Any:
        first = zlib.crc32(f"{text}/{kernel}".encode()) % len(configs)
        errors = []
        for config in (*configs[first:], *configs[:first]):
            try:
                return launch(config)
            except _tolerated() as error:
                errors.append(error)
        raise errors[0]

    with _instead_of_tuning(run):
        yield


@contextmanager
def _instead_of_tuning(run: Callable[[str, Sequence[Any], Launch], Any]) -> Iterator[None]:
    """`run` gets the kernel's name, the configurations that would be timed, and what launches it with one of them."""
    from triton.runtime.autotuner import Autotuner

    def tune(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        def launch(config: Any) -> Any:
            values = config.all_kwargs()
            if config.pre_hook is not None:
                config.pre_hook({**tuner.nargs, **kwargs, **values})
            tuner.best_config = config
            return tuner.fn.run(*args, **kwargs, **values)

        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))  # by these prune_configs drops some
        pruned = tuner.prune_configs(kwargs) if len(tuner.configs) > 1 else tuner.configs
        result = run(tuner.base_fn.__name__, pruned or tuner.configs, launch)
        tuner.nargs = None
        return result

    original = Autotuner.run
    Autotuner.run = tune
    try:
        yield
    finally:
        Autotuner.run = original


def _tolerated() -> tuple[type[Exception], ...]:
    """What Triton takes for a configuration that is not possible here."""
    from triton.compiler.errors import CompileTimeAssertionFailure
    from triton.runtime.errors import OutOfResources, PTXASError

    return OutOfResources, CompileTimeAssertionFailure, PTXASError
