"""Text files that a user names."""

from __future__ import annotations


def why_unread(error: OSError | UnicodeDecodeError) -> str:
    """Why a text file cannot be read: the system's reason, or the byte that is not UTF-8."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    return str(error.strerror)
