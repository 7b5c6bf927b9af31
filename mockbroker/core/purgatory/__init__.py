"""Delayed operations: requests that wait for a change of a partition."""
