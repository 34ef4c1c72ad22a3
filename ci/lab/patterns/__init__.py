"""Patterns: what saved time before, under a stable name, and the checks that say where one applies now."""
