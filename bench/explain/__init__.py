"""Why does it take so long? The profiler's counters, and what the compiler made of the kernel."""
