"""Records times of identical code on a GPU, for the bench of the judge (benchmarks/verdict)."""
