"""Optimisation sessions: what was believed, tried and measured, one gate after the other."""
