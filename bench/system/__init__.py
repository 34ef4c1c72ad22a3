"""The machine: its processes, locks, clocks and sensors, git, and what it reports of itself."""
