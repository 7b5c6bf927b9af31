"""Members of classic groups, dynamic and static ones: join, sync, poll, beat, commit, leave."""

from __future__ import annotations

from typing import Any

from mockbroker.simulation.clients.base import GROUP, Asking, GaveUp
from mockbroker.simulation.clients.reading import TP, Reading
from mockbroker.simulation.history import Owned
from mockbroker.simulation.script import Script
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.codec import named_codec
from mockbroker_protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from mockbroker_protocol.messages.heartbeat import HeartbeatRequest
from mockbroker_protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from mockbroker_protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from mockbroker_protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_MEMBER_ID_REQUIRED = int(ErrorCode.MEMBER_ID_REQUIRED)
_FENCED_INSTANCE = int(ErrorCode.FENCED_INSTANCE_ID)
_VERSION = b"\x00\x00"  # of the blobs
_JOINS_MAX = 30


def _codec(name: str) -> Any:
    return named_codec("consumer_protocol", name, 0)


class ClassicMember(Reading):
    """One member. When it loses its membership it joins again, as an application's poll does."""

    def live(self) -> Script:
        settings = self.settings
        self.member_id = ""
        self.generation = -1
        self.start_reading([])
        self._beat_ms = 0
        yield from self.refresh()
        joins = 0
        for number in range(settings.operations):
            yield self.pause()
            if self.generation < 0:
                joins += 1
                if joins > _JOINS_MAX:
                    raise GaveUp("join")
                try:
                    yield from self._join()
                except GaveUp as gave_up:
                    self._lost(gave_up.error)
                    yield self.backoff(joins)
                    continue
            if self.positions:
                yield from self.poll()
            now_ms = self.history.now_ms()
            if now_ms - self._beat_ms >= settings.session_timeout_ms // 3:
                yield from self._beat()
            if self.generation >= 0 and number % 3 == 2:
                error = yield from self.commit(
                    settings.group, self.member_id, self.generation, settings.instance_id
                )
                if error:
                    self._lost(error)
        if self.rng.random() < 0.7 and self.member_id:
            yield from self._leave()

    def _lost(self, error: int) -> None:
        """An answer said that the member has to join again, perhaps as another one."""
        self.generation = -1
        if error == int(ErrorCode.UNKNOWN_MEMBER_ID) or error == _FENCED_INSTANCE:
            self.member_id = ""

    # -- rebalances --------------------------------------------------------------------------------

    def _join(self) -> Asking:
        settings = self.settings
        blob = _VERSION + b"".join(
            _codec("ConsumerProtocolSubscription").encode(
                ConsumerProtocolSubscription(topics=list(settings.topics))
            )
        )
        patience_ms = settings.rebalance_timeout_ms + settings.session_timeout_ms + 10_000
        response: Any = None
        for _ in range(3):
            request = JoinGroupRequest(
                settings.group,
                settings.session_timeout_ms,
                settings.rebalance_timeout_ms,
                self.member_id,
                settings.instance_id,
                "consumer",
                [JoinGroupRequestProtocol("range", blob)],
            )
            response = yield from self.ask_coordinator(
                GROUP, settings.group, ApiKey.JOIN_GROUP, request, None, patience_ms
            )
            if response.error_code == _MEMBER_ID_REQUIRED:
                self.member_id = response.member_id
                continue
            break
        if response.error_code:
            raise GaveUp("join", response.error_code)
        self.member_id = response.member_id
        assignments: list[SyncGroupRequestAssignment] = []
        if response.leader == self.member_id and not response.skip_assignment:
            yield from self.refresh()
            assignments = self._assign(response)
        sync = SyncGroupRequest(
            settings.group,
            response.generation_id,
            self.member_id,
            settings.instance_id,
            "consumer",
            response.protocol_name,
            assignments,
        )
        generation = response.generation_id
        answer = yield from self.ask_coordinator(
            GROUP, settings.group, ApiKey.SYNC_GROUP, sync, None, patience_ms
        )
        if answer.error_code:
            raise GaveUp("sync", answer.error_code)
        yield from self._take_over(generation, answer.assignment)

    def _assign(self, response: Any) -> list[SyncGroupRequestAssignment]:
        """All partitions to the members in turn; the seed says who comes first."""
        members = sorted(member.member_id for member in response.members)
        given: dict[str, list[TP]] = {member_id: [] for member_id in members}
        number = self.rng.randrange(len(members))
        for topic in sorted(self.settings.topics):
            for index in sorted(self.partitions_of(topic)):
                given[members[number % len(members)]].append((topic, index))
                number += 1
        encode = _codec("ConsumerProtocolAssignment").encode
        made = []
        for member_id, partitions in given.items():
            rows: dict[str, list[int]] = {}
            for topic, index in partitions:
                rows.setdefault(topic, []).append(index)
            blob = encode(
                ConsumerProtocolAssignment([TopicPartition(t, some) for t, some in rows.items()])
            )
            made.append(SyncGroupRequestAssignment(member_id, _VERSION + b"".join(blob)))
        return made

    def _take_over(self, generation: int, blob: bytes) -> Asking:
        partitions: list[TP] = []
        if blob:
            decoded, _ = _codec("ConsumerProtocolAssignment").decode(memoryview(blob), 2)
            partitions = [
                (each.topic, index)
                for each in decoded.assigned_partitions
                for index in each.partitions
            ]
        history = self.history
        self.generation = generation
        self._beat_ms = history.now_ms()
        history.counts["assignments taken"] += 1
        history.owned.append(
            Owned(
                "classic",
                self.settings.group,
                self.settings.instance_id or self.member_id,
                self.name,
                generation,
                frozenset(partitions),
                history.now_ms(),
            )
        )
        self.start_reading(partitions)
        yield from self.find_committed(self.settings.group, partitions)

    # -- membership --------------------------------------------------------------------------------

    def _beat(self) -> Asking:
        settings = self.settings
        request = HeartbeatRequest(
            settings.group, self.generation, self.member_id, settings.instance_id
        )
        response = yield from self.ask_coordinator(GROUP, settings.group, ApiKey.HEARTBEAT, request)
        self._beat_ms = self.history.now_ms()
        if response.error_code:
            if response.error_code == int(ErrorCode.REBALANCE_IN_PROGRESS):
                yield from self.commit(
                    settings.group, self.member_id, self.generation, settings.instance_id
                )
            self._lost(response.error_code)

    def _leave(self) -> Asking:
        settings = self.settings
        request = LeaveGroupRequest(
            settings.group,
            self.member_id,
            [MemberIdentity(self.member_id, settings.instance_id)],
        )
        yield from self.ask_coordinator(
            GROUP, settings.group, ApiKey.LEAVE_GROUP, request, attempts=5
        )
        self.generation = -1
