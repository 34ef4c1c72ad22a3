"""From a commit's sources to a library: toolchain, targets, flags, cache, and the compiler's first error."""
