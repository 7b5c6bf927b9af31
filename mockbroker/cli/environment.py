"""The environment variables by which programs and our own commands find a cluster."""

from __future__ import annotations

BOOTSTRAP = "MOCKBROKER_BOOTSTRAP"
"""host:port of brokers, separated by commas."""
ADMIN = "MOCKBROKER_ADMIN"
"""The admin API's URL."""
ADMIN_TOKEN = "MOCKBROKER_ADMIN_TOKEN"  # noqa: S105 - a name
"""The admin API's token."""
ADMIN_TOKEN_FILE = "MOCKBROKER_ADMIN_TOKEN_FILE"  # noqa: S105 - a name
"""A file with the admin API's token."""
