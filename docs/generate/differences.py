"""Where a cluster differs from Kafka on purpose, from the table that `strict` goes by."""

from __future__ import annotations

from markdown import page as join
from markdown import table

from mockbroker.core.configs.differences import DIFFERENCES

INTRO = """
# Differences

A cluster differs from Kafka on purpose where that helps tests. Each difference has a broker config.
`mockbroker serve --strict`, `strict = true` in a config file and `Cluster(strict=True)` set all of
them to Kafka's behaviour; `--config` sets one. [Limits](../explanation/limits.md) lists what has no
config.
"""


def page() -> str:
    rows = [
        (f"`{each.config}`", f"`{each.ours}`", f"`{each.kafka}`", each.what) for each in DIFFERENCES
    ]
    return join(INTRO, table(("config", "here", "as in Kafka", "what differs"), rows))
