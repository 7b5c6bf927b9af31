"""The interface for code that awaits. `blocking` is generated from it."""
