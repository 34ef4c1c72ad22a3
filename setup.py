"""Packaging; `bench.build` compiles the kernel (see the `build_ext` command there)."""

from setuptools import setup

setup()
