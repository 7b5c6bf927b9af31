"""Real clients on secured listeners."""
