"""Outcomes to learn from: many small changes of the repository's kernels, each tried by kernelgate and logged."""
