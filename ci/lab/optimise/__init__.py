"""Runs an optimisation session: its gates, its tries, and what is kept of them; ci/sessions says what they mean."""
