"""The console in a real browser, with a cluster and clients behind it."""
