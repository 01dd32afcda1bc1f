"""Contract packs: what an engine promises, per release, as data."""
