"""File descriptors of the process. Clients leave some to the rest of the cluster."""

from __future__ import annotations

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

DESCRIPTORS = "ulimit -n"
"""The limit's name in messages and metrics."""

# For the admin API, files of journals and data directories, and late imports.
RESERVED = 64
UNLIMITED = 1 << 31


def descriptors_for_clients() -> int:
    """The first descriptor that no client gets. At most half of all are reserved."""
    if resource is None:
        return UNLIMITED
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return UNLIMITED
    return max(limit - RESERVED, limit // 2)


def raise_descriptor_limit() -> None:
    """Raise the soft limit as far as the system allows this user."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft in (resource.RLIM_INFINITY, hard):
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # macOS reports a hard limit that it does not grant
        return
