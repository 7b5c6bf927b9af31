"""The error of a job that cannot run."""

from __future__ import annotations


class JobError(RuntimeError):
    """A requirement of a job is missing or incompatible; the message ends with the remedy."""
