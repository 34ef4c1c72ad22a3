"""The memory of measurements: what was measured before, when it changed, and which commit changed it."""
