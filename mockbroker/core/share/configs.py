"""The configs of one share group: the group's own, or the broker's (ShareGroupConfigProvider)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockbroker.core.configs.defs.kinds import ConfigValue
    from mockbroker.core.configs.values import ClusterConfigs

READ_COMMITTED = "read_committed"


class ShareGroupConfigs:
    """The values now in force; a change of the configs takes effect with the next use."""

    __slots__ = ("_configs", "_group_id", "_values", "_version")

    def __init__(self, configs: ClusterConfigs, group_id: str) -> None:
        self._configs = configs
        self._group_id = group_id
        self._values: dict[str, ConfigValue] = {}
        self._version = configs.version

    def _get(self, name: str) -> ConfigValue:
        if self._version != self._configs.version:
            self._values.clear()
            self._version = self._configs.version
        if name not in self._values:
            self._values[name] = self._configs.group_value(self._group_id, name)
        return self._values[name]

    def _get_int(self, name: str) -> int:
        value = self._get(name)
        assert isinstance(value, int)
        return value

    @property
    def delivery_count_limit(self) -> int:
        """How often a record is delivered at most."""
        return self._get_int("share.delivery.count.limit")

    @property
    def record_locks_max(self) -> int:
        """How many records of a share partition are in flight at most."""
        return self._get_int("share.partition.max.record.locks")

    @property
    def lock_duration_ms(self) -> int:
        """How long an acquisition lock holds."""
        return self._get_int("share.record.lock.duration.ms")

    @property
    def may_renew(self) -> bool:
        """Whether members may renew acquisition locks."""
        return bool(self._get("share.renew.acknowledge.enable"))

    @property
    def reads_committed(self) -> bool:
        """Whether the records of aborted transactions are left out."""
        return self._get("share.isolation.level") == READ_COMMITTED

    @property
    def auto_offset_reset(self) -> str:
        """`earliest`, `latest`, or `by_duration:` and a duration of ISO 8601."""
        return str(self._get("share.auto.offset.reset"))
