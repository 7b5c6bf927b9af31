"""Unmodified clients against the cluster."""
