"""Requests that wait for a partition to move, and how they end."""
