"""Configs with secrets, and the text in place of their values."""

from __future__ import annotations

from mockbroker.core.configs.defs import BROKER_CONFIGS

HIDDEN = "[hidden]"

_SECRET_CONFIGS = tuple(name for name, config in BROKER_CONFIGS.items() if config.sensitive)


def is_secret_config(name: object) -> bool:
    """Whether a config of this name, perhaps with a listener's prefix, holds a password."""
    return isinstance(name, str) and name.endswith(_SECRET_CONFIGS)
