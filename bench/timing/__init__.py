"""How long does the kernel take? Paired comparisons in fresh processes."""
