"""Packages with Triton kernels: imported side by side, compiled without a GPU, found in the cache while measuring."""
