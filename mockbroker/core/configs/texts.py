"""Configs as users give them, and as Kafka keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

GivenConfig: TypeAlias = str | int | float | bool
"""The value of a config in a file or in Python."""


def config_text(value: GivenConfig) -> str:
    """A config value as Kafka writes it: `true`, not `True`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def config_texts(configs: Mapping[str, GivenConfig]) -> dict[str, str]:
    """Config values as Kafka's strings."""
    return {name: config_text(value) for name, value in configs.items()}
