"""Several agents without a framework: a planner, two researchers side by side, a writer who joins what they found."""
