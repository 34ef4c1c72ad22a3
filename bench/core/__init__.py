"""Plain data and errors that every package uses: dtypes, GPUs, rates, files. Loads nothing heavy."""
