"""Planted bugs: which of them `kernelgate fuzz`, timed checks and compute-sanitizer catch, and in which time."""
