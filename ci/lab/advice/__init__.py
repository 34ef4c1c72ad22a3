"""What to try next, learnt from the outcomes of all sessions, with the confidence that it has earned."""
