"""What the kernel's library says of itself, as the build finds it."""

from __future__ import annotations

import pytest

from kernelgate.bench.build.library import Library


def test_no_kernel_spills_and_each_says_what_its_launch_asks_for(kernel_library: Library) -> None:
    manifest = kernel_library.manifest
    if manifest.facts_missing:
        pytest.skip(manifest.facts_missing)
    assert manifest.kernels
    for kernel in manifest.kernels:
        assert kernel.spill_bytes == 0, kernel.name
        if "Wgmma" in kernel.name:
            assert kernel.dynamic_shared_bytes, kernel.name
        else:
            assert (kernel.dynamic_shared_bytes, kernel.threads) == (48 * 1024, 128), kernel.name
