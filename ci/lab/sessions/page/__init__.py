"""The page of one session: gates, metrics, tries, and a calculator of what fits. Written to a file, or served."""
