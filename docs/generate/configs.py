"""The configs that the cluster accepts, and those whose defaults are not Kafka's."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

from markdown import page as join
from markdown import table

from mockbroker.core.configs.defs import BROKER_CONFIGS, GROUP_CONFIGS, TOPIC_CONFIGS, ConfigDef
from mockbroker.core.configs.differences import DIFFERENCES

CLIENTS = Path(__file__).resolve().parents[1] / "_data" / "client_configs.toml"

INTRO = """
# Configs

All accepted configs with Kafka's defaults. Set broker configs with `serve --config NAME=VALUE` or
in the `[configs]` of a config file, topic configs with the topic, and all configs by any admin
client. [Differences](#differences) lists the defaults that differ from Kafka's. Configs of threads,
disks and segment files are stored and described without effect.
"""

INTRO_DIFFERENCES = """
## Differences

A cluster differs from Kafka on purpose where that helps tests. Each difference has a broker config.
`mockbroker serve --strict`, `strict = true` in a config file and `Cluster(strict=True)` set all of
them to Kafka's behaviour; `--config` sets one. [Limits](../explanation/limits.md) lists the
differences without a config.
"""

ONLY_CLIENTS = """
## Clients

Brokers refuse these configs with INVALID_CONFIG. The last column has their effect on a broker.
"""


def rows(definitions: Iterable[ConfigDef]) -> list[tuple[str, str, str, str, str]]:
    return [
        (
            f"`{definition.name}`",
            definition.type.name.lower(),
            shown(definition.default),
            valid(definition),
            definition.mode.name.lower().replace("_", "-"),
        )
        for definition in sorted(definitions, key=lambda definition: definition.name)
        if not definition.internal
    ]


def valid(definition: ConfigDef) -> str:
    """What a value has to be beyond its type."""
    return "" if definition.validator is None else definition.validator.valid.replace("|", "\\|")


def shown(default: str | None) -> str:
    if default is None:
        return "null"
    return f"`{default}`" if default else "(empty)"


def page() -> str:
    header = ("name", "type", "default", "valid")
    clients = tomllib.loads(CLIENTS.read_text(encoding="utf-8"))["configs"]
    return join(
        INTRO,
        "## Topics",
        table(header, (row[:4] for row in rows(TOPIC_CONFIGS.values()))),
        "## Groups",
        table(header, (row[:4] for row in rows(GROUP_CONFIGS.values()))),
        "## Brokers",
        table((*header, "update mode"), rows(BROKER_CONFIGS.values())),
        INTRO_DIFFERENCES,
        table(
            ("config", "here", "as in Kafka", "what differs"),
            [(f"`{d.config}`", f"`{d.ours}`", f"`{d.kafka}`", d.what) for d in DIFFERENCES],
        ),
        ONLY_CLIENTS,
        table(
            ("name", "who", "what brokers see"),
            [(f"`{name}`", who, seen) for name, (who, seen) in sorted(clients.items())],
        ),
    )
