"""Members of consumer groups (KIP-848)."""

from __future__ import annotations

from typing import Any

from mockbroker.core.ids import uuid_text
from mockbroker.simulation.clients.base import GROUP, CallSequence
from mockbroker.simulation.clients.reading import TP, Reading
from mockbroker.simulation.history import GroupCall, Owned
from mockbroker.simulation.script import Script
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    RequestTopicPartitions,
)

_FENCED = frozenset((int(ErrorCode.FENCED_MEMBER_EPOCH), int(ErrorCode.UNKNOWN_MEMBER_ID)))
_HABIT_SHARE = 0.1
_JOIN_EPOCH = 0
_LEAVE_EPOCH = -1
_STATIC_LEAVE_EPOCH = -2


def _keys(rows: Any) -> frozenset[tuple[bytes, int]]:
    return frozenset((each.topic_id, index) for each in rows for index in each.partitions)


class ConsumerMember(Reading):
    """One member, dynamic or static."""

    def live(self) -> Script:
        settings = self.settings
        self.member_id = uuid_text(self.rng.randbytes(16))
        self.epoch = _JOIN_EPOCH
        self.start_reading([])
        self._beat_ms = -1
        self._interval_ms = 0
        self._changed = True
        yield from self.refresh()
        for number in range(settings.operations):
            yield self.pause()
            if self.epoch > 0 and self._falls_into("returns"):
                if settings.instance_id is not None:
                    yield from self._leave()
                self.member_id = uuid_text(self.rng.randbytes(16))
                self._rejoin()
            now_ms = self.history.now_ms()
            if self._changed or now_ms - self._beat_ms >= self._interval_ms:
                yield from self._beat()
            if self.positions:
                yield from self.poll()
            if self.epoch > 0 and self.positions and number % 3 == 2:
                error = yield from self.commit(settings.group, self.member_id, self.epoch)
                if error in _FENCED:
                    self._rejoin()
        if self.rng.random() < 0.7 and self.epoch > 0:
            yield from self._leave()

    def _falls_into(self, habit: str) -> bool:
        return habit in self.settings.habits and self.rng.random() < _HABIT_SHARE

    def _rejoin(self) -> None:
        self.epoch = _JOIN_EPOCH
        self.start_reading([])
        self._changed = True

    def _beat(self) -> CallSequence:
        settings = self.settings
        joins = self.epoch == _JOIN_EPOCH
        request = ConsumerGroupHeartbeatRequest(
            group_id=settings.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=settings.instance_id,
            rebalance_timeout_ms=settings.rebalance_timeout_ms if joins else -1,
            subscribed_topic_names=list(settings.topics) if joins else None,
            server_assignor=settings.assignor or None if joins else None,
            topic_partitions=self._owned() if joins or self._changed else None,
        )
        note = self._note("join" if joins else "heartbeat", request.topic_partitions)
        response = yield from self.ask_coordinator(
            GROUP, settings.group, ApiKey.CONSUMER_GROUP_HEARTBEAT, request, note=note
        )
        note.answered_generation = response.member_epoch
        if response.assignment is not None:
            note.assigned = _keys(response.assignment.topic_partitions)
        self._beat_ms = self.history.now_ms()
        if response.error_code:
            self._rejoin()
            yield self.backoff(2)
            return
        self._changed = False
        self.epoch = response.member_epoch
        self._interval_ms = response.heartbeat_interval_ms
        if response.assignment is not None:
            yield from self._reconcile(response.assignment)

    def _note(self, what: str, owned: list[RequestTopicPartitions] | None) -> GroupCall:
        settings = self.settings
        note = self.history.group_call(
            what,
            "consumer",
            settings.group,
            self.name,
            self.member_id,
            settings.instance_id,
            self.epoch,
        )
        note.owned = None if owned is None else _keys(owned)
        return note

    def _owned(self) -> list[RequestTopicPartitions]:
        topics: dict[str, list[int]] = {}
        for name, index in self.positions:
            topics.setdefault(name, []).append(index)
        return [RequestTopicPartitions(self._topic_id(t), some) for t, some in topics.items()]

    def _reconcile(self, assignment: Any) -> CallSequence:
        """Revoke and take partitions, and report the result with the next heartbeat."""
        wanted: list[TP] = []
        for each in assignment.topic_partitions:
            if self.topic_name(each.topic_id) is None:
                yield from self.refresh()
            name = self.topic_name(each.topic_id)
            if name is not None:
                wanted += [(name, index) for index in each.partitions]
        history = self.history
        history.counts["assignments taken"] += 1
        history.owned.append(
            Owned(
                "consumer",
                self.settings.group,
                self.settings.instance_id or self.member_id,
                self.name,
                self.epoch,
                frozenset(wanted),
                history.now_ms(),
            )
        )
        former = self.positions
        if set(former) == set(wanted):
            return
        if any(tp not in wanted for tp in former):
            yield from self.commit(self.settings.group, self.member_id, self.epoch)
        self.start_reading(wanted)
        fresh = [tp for tp in wanted if tp not in former]
        for tp in wanted:
            if tp in former:
                self.positions[tp] = former[tp]
        self._changed = True
        yield from self.find_committed(self.settings.group, fresh, self.member_id, self.epoch)

    def _leave(self) -> CallSequence:
        settings = self.settings
        request = ConsumerGroupHeartbeatRequest(
            group_id=settings.group,
            member_id=self.member_id,
            member_epoch=_LEAVE_EPOCH if settings.instance_id is None else _STATIC_LEAVE_EPOCH,
            instance_id=settings.instance_id,
        )
        note = self._note("leave", [])
        yield from self.ask_coordinator(
            GROUP, settings.group, ApiKey.CONSUMER_GROUP_HEARTBEAT, request, attempts=5, note=note
        )
        self.epoch = _JOIN_EPOCH
