"""Measures. Knows GPUs and torch, writes the run record, and never decides."""
