"""Why Spark cannot run here, and what to do about it."""

from __future__ import annotations


class SparkSetupError(RuntimeError):
    """Something that Spark needs is missing or does not fit; the message ends with the remedy."""


class MavenError(SparkSetupError):
    """Maven, or Java, is missing or did not do what was asked; the message says which and why."""
