"""Runs in the interpreter that loads head: every clock of Python's leaves out what head has "stolen".

Wins where the worker asks Python for the time. Replaces the functions in `time`, and wherever a module of kernelgate, a
function of one, or a class of one holds on to them.
"""

import ctypes
import sys
import time

STOLEN = ctypes.c_int64.in_dll(ctypes.CDLL(library), "stolen_ns")
REAL = {name: getattr(time, name) for name in ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns")}


def slow(name):
    real, whole = REAL[name], name.endswith("_ns")
    return lambda: real() - (STOLEN.value if whole else STOLEN.value / 1e9)


SLOW = {REAL[name]: slow(name) for name in REAL}
for name, real in REAL.items():
    setattr(time, name, SLOW[real])
for module in [one for key, one in list(sys.modules.items()) if key == "__main__" or key.startswith("kernelgate.")]:
    holders = [module, *(one for one in vars(module).values() if isinstance(one, type))]
    for holder in holders:
        for name, value in list(vars(holder).items()):
            try:
                if value in SLOW:
                    setattr(holder, name, SLOW[value])
            except (TypeError, AttributeError):
                continue
            if callable(value) and getattr(value, "__defaults__", None):
                value.__defaults__ = tuple(SLOW.get(one, one) if callable(one) else one for one in value.__defaults__)
