"""The laboratory: optimisation sessions, patterns, advice and what agents call. Nothing imports it."""
