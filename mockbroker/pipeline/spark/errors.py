"""The error of a job that cannot run."""

from __future__ import annotations


class JobError(RuntimeError):
    """A part that a job needs is missing or does not fit; the message ends with the remedy."""
