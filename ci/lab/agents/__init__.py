"""What a coding agent may call, with which words, and for how long."""
