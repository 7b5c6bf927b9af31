"""The catalogue of configs that the cluster accepts."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

from markdown import page as join
from markdown import table

from mockbroker.core.configs.defs import BROKER_CONFIGS, GROUP_CONFIGS, TOPIC_CONFIGS, ConfigDef

CLIENTS = Path(__file__).resolve().parents[1] / "_data" / "client_configs.toml"
# One of these is wrong for whatever has a validator, which then says what it wants.
_WRONG = (-(2**63), 2**63 - 1, -1e300, 1e300, "\0", ("\0",), ())

INTRO = """
# Configs

Every config that is accepted, described and validated, with Kafka's own defaults. Broker configs
are set with `serve --config NAME=VALUE` or in the `[configs]` of a config file, topic configs with
the topic, and all of them by any admin client while the cluster runs. One default differs from
Kafka's: `group.initial.rebalance.delay.ms` is 0, so that a test's first consumer does not wait.
A config that steers what does not exist here (threads, disks, log segments' files) is kept and
described but changes nothing.
"""

ONLY_CLIENTS = """
## Clients

Not known to brokers, which refuse them as INVALID_CONFIG; what they see of them is something else.
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
    """What a value has to be beyond its type, in the words with which others are refused."""
    found: list[str] = []
    for wrong in _WRONG:
        try:
            wanted = definition.validator(wrong) if definition.validator else None
        except (AssertionError, TypeError, ValueError, AttributeError):
            continue  # of another type
        if wanted is not None and wanted not in found:
            found.append(wanted)
    return "; ".join(found).replace("|", "\\|")


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
        ONLY_CLIENTS,
        table(
            ("name", "who", "what brokers see"),
            [(f"`{name}`", who, seen) for name, (who, seen) in sorted(clients.items())],
        ),
    )
