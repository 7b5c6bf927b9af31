"""Errors of a missing or unfit Spark."""

from __future__ import annotations


class SparkSetupError(RuntimeError):
    """Something that Spark needs is missing or does not fit; the message ends with the remedy."""


class MavenError(SparkSetupError):
    """Maven or Java is missing or failed; the message says which and why."""
