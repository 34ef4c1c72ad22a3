"""Every measurement that was ever made: kept as files, judged once, and found through an index."""
