"""Kernels in the ways that repositories write them."""

from my_kernels import faults, operators, plain, tuned, wrappers

__all__ = ["faults", "operators", "plain", "tuned", "wrappers"]
