"""Is this machine fit to measure? Each check that is not passed says how to fix what it found."""
