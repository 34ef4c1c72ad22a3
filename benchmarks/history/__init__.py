"""How well changes over time are found, on series with known truth."""
