"""Numbers in, verdict out. Writes no prose beyond the sentence that states a finding."""
