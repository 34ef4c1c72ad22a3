"""The numbers of .ci/kernelgate.toml that a project may change."""
