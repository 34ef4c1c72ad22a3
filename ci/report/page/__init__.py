"""The page: one HTML file with everything that was measured, drawn. Needs nothing but itself."""
