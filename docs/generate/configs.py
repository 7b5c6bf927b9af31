"""The catalogue of configs that the cluster accepts."""

from __future__ import annotations

from collections.abc import Iterable

from markdown import page as join
from markdown import table

from mockbroker.core.configs.defs import BROKER_CONFIGS, GROUP_CONFIGS, TOPIC_CONFIGS, ConfigDef

INTRO = """
# Configs

Every config that is accepted, described and validated, with Kafka's own defaults. Broker configs
are set with `serve --config NAME=VALUE` or in the `[configs]` of a config file, topic configs with
the topic, and all of them by any admin client while the cluster runs. One default differs from
Kafka's: `group.initial.rebalance.delay.ms` is 0, so that a test's first consumer does not wait.
A config that steers what does not exist here (threads, disks, log segments' files) is kept and
described but changes nothing.
"""


def rows(definitions: Iterable[ConfigDef]) -> list[tuple[str, str, str, str]]:
    return [
        (
            f"`{definition.name}`",
            definition.type.name.lower(),
            shown(definition.default),
            definition.mode.name.lower().replace("_", "-"),
        )
        for definition in sorted(definitions, key=lambda definition: definition.name)
        if not definition.internal
    ]


def shown(default: str | None) -> str:
    if default is None:
        return "null"
    return f"`{default}`" if default else "(empty)"


def page() -> str:
    header = ("name", "type", "default")
    return join(
        INTRO,
        "## Topics",
        table(header, (row[:3] for row in rows(TOPIC_CONFIGS.values()))),
        "## Groups",
        table(header, (row[:3] for row in rows(GROUP_CONFIGS.values()))),
        "## Brokers",
        table((*header, "update mode"), rows(BROKER_CONFIGS.values())),
    )
