"""Measures whole commits: every case, every check, and the commits between two."""
