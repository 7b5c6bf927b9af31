"""Clients of a cluster that judges what they may do."""
