"""Errors of a missing or unsuitable Spark."""

from __future__ import annotations


class SparkSetupError(RuntimeError):
    """A part that Spark needs is missing or does not fit; the message ends with the remedy."""


class MavenError(SparkSetupError):
    """Maven or Java is missing or failed; the message has the reason."""
