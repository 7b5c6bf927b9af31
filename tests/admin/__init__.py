"""The admin server, against a view that counts by hand; the whole stack is met in tests/cli."""
