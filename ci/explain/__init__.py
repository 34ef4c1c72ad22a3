"""What holds a kernel back, from its profile, and what to try next."""
