"""Text and blocks, and how they are escaped and rendered. Knows no verdict."""
