"""Share groups: how many records a second their members consume and acknowledge."""

from __future__ import annotations

from collections.abc import Mapping

from bench.drivers import FRANZ_GO
from bench.model import PER_SECOND, Figures, Measure, Running, Scale, Workload
from bench.workloads.support import fresh_topic
from tests.support.librdkafka import set_group_configs

MEMBERS = (1, 8)


class ShareConsumption:
    """Consume one partition with implicit acknowledgement: a poll accepts what the last one got."""

    fresh = False
    excluded: Mapping[str, str] = {
        "librdkafka-mock": "has no share groups",
    }

    def __init__(self, members: int) -> None:
        self.name = f"share-{members}"
        self._members = members
        who = "1 member" if members == 1 else f"{members} members"
        title = f"records of a share group, {who}, franz-go"
        self.measures: tuple[Measure, ...] = (Measure(self.name, title, PER_SECOND),)

    def prepare(self) -> None:
        FRANZ_GO.prepare()

    def run(self, running: Running, scale: Scale) -> Figures:
        count = scale.shared_records
        with fresh_topic(running) as topic:
            bootstrap = running.bootstrap_servers
            set_group_configs(bootstrap, topic, share_auto_offset_reset="earliest")
            seconds = FRANZ_GO.consume_shared(bootstrap, topic, count, self._members)
        return {self.name: count / seconds}


def share_workloads() -> list[Workload]:
    return [ShareConsumption(members) for members in MEMBERS]
