"""Committed offsets: when clients commit, where the commits go, and where a restart begins."""
