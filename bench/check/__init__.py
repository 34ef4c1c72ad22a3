"""Is the kernel correct? Random inputs, and compute-sanitizer."""
