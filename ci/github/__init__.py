"""GitHub: what is measured, what of a run is believed, and what a pull request shows."""
