"""Judges and reports. Reads the run record; imports neither torch nor anything of a GPU."""
