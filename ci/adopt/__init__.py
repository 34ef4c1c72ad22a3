"""What a repository needs to begin with kernelgate: found in its sources, which are read and never run."""
