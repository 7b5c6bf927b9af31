"""The admin server with a handmade target; tests/cli tests the whole stack."""
