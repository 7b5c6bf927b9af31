"""Why a job cannot run."""

from __future__ import annotations


class JobError(RuntimeError):
    """Something that a job needs is missing or does not fit; the message ends with the remedy."""
