"""Members of classic groups, dynamic and static ones."""

from __future__ import annotations

from typing import Any

from mockbroker.simulation.clients.base import GROUP, CallSequence, GaveUp
from mockbroker.simulation.clients.reading import TP, Reading
from mockbroker.simulation.history import GroupCall, Owned
from mockbroker.simulation.script import Script, Sleep
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
_REBALANCING = int(ErrorCode.REBALANCE_IN_PROGRESS)
_JOINS_MAX = 30
_HABIT_SHARE = 0.3  # how often a client follows a habit
_ONLY_HEARTBEATS_MS = 2_500  # the time beyond the rebalance timeout
_IGNORING_MS = 25_000
_BEAT_MS = 900


def _codec(name: str) -> Any:
    return named_codec("consumer_protocol", name, 0)


class ClassicMember(Reading):
    """One member. After a loss of its membership it joins again, as an application's poll does."""

    def live(self) -> Script:
        settings = self.settings
        self.member_id = ""
        self.generation = -1
        self._former: tuple[str, int] | None = None  # an earlier member id and generation
        self.start_reading([])
        self._beat_ms = 0
        yield from self.refresh()
        joins = 0
        for number in range(settings.operations):
            yield self.pause()
            if self._falls_into("stalls"):
                yield Sleep(settings.session_timeout_ms + self.rng.randint(0, 3_000))
            if self.generation >= 0 and self._falls_into("returns"):
                self._former = (self.member_id, self.generation)
                self.member_id, self.generation = "", -1
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
                yield from self._send_stale_requests()
            if self.positions:
                yield from self.poll()
            now_ms = self.history.now_ms()
            if now_ms - self._beat_ms >= settings.session_timeout_ms // 3:
                yield from self._beat()
            if self.generation >= 0 and number % 3 == 2:
                error = yield from self._commit(self.member_id, self.generation)
                if error:
                    self._lost(error)
        if self.rng.random() < 0.7 and self.member_id:
            yield from self._leave()

    def _falls_into(self, habit: str) -> bool:
        return habit in self.settings.habits and self.rng.random() < _HABIT_SHARE / 3

    def _lost(self, error: int) -> None:
        """Handle an error after which the member must join again, perhaps with a new id."""
        if self.generation >= 0:
            self._former = (self.member_id, self.generation)
        self.generation = -1
        if error == int(ErrorCode.UNKNOWN_MEMBER_ID) or error == _FENCED_INSTANCE:
            self.member_id = ""

    def _note(self, what: str, member_id: str, generation: int) -> GroupCall:
        settings = self.settings
        return self.history.group_call(
            what, "classic", settings.group, self.name, member_id, settings.instance_id, generation
        )

    def _commit(self, member_id: str, generation: int) -> CallSequence:
        settings = self.settings
        note = self._note("commit", member_id, generation)
        error = yield from self.commit(
            settings.group, member_id, generation, settings.instance_id, note=note
        )
        return error

    def _send_stale_requests(self) -> CallSequence:
        """Send requests with the former member id and generation."""
        former = self._former
        if former is None or "stale_requests" not in self.settings.habits or self.generation < 0:
            return
        self._former = None
        if former == (self.member_id, self.generation):
            return
        settings = self.settings
        self.history.counts["members with stale requests"] += 1
        for what in self.rng.sample(("heartbeat", "commit", "sync"), 2):
            if what == "heartbeat":
                yield from self._heartbeat_once(*former)
            elif what == "commit":
                yield from self._commit(*former)
            else:
                note = self._note("sync", *former)
                own = {self.member_id: b"", former[0]: b""}
                sync = SyncGroupRequest(
                    settings.group,
                    former[1],
                    former[0],
                    settings.instance_id,
                    "consumer",
                    "range",
                    [SyncGroupRequestAssignment(each, blob) for each, blob in own.items()],
                )
                note.assignments = own
                yield from self.ask_coordinator(
                    GROUP, settings.group, ApiKey.SYNC_GROUP, sync, note=note
                )

    def _heartbeat_once(self, member_id: str, generation: int) -> CallSequence:
        """Send one Heartbeat; returns the error code."""
        settings = self.settings
        note = self._note("heartbeat", member_id, generation)
        request = HeartbeatRequest(settings.group, generation, member_id, settings.instance_id)
        response = yield from self.ask_coordinator(
            GROUP, settings.group, ApiKey.HEARTBEAT, request, note=note
        )
        return response.error_code

    def _heartbeat_until(
        self, generation: int, until_ms: int, go_on: frozenset[int]
    ) -> CallSequence:
        """Send only Heartbeats while they are answered with an error of `go_on`."""
        error = 0
        while self.history.now_ms() < until_ms:
            yield Sleep(min(_BEAT_MS, self.settings.session_timeout_ms // 3))
            error = yield from self._heartbeat_once(self.member_id, generation)
            if error not in go_on:
                break
        return error

    # -- rebalances --------------------------------------------------------------------------------

    def _join(self) -> CallSequence:
        settings = self.settings
        blob = _VERSION + b"".join(
            _codec("ConsumerProtocolSubscription").encode(
                ConsumerProtocolSubscription(topics=list(settings.topics))
            )
        )
        known_ms = self.history.rebalance_ms.get(settings.group, 0)
        self.history.rebalance_ms[settings.group] = max(known_ms, settings.rebalance_timeout_ms)
        patience_ms = settings.rebalance_timeout_ms + settings.session_timeout_ms + 10_000
        response: Any = None
        for _ in range(3):
            note = self._note("join", self.member_id, -1)
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
                GROUP, settings.group, ApiKey.JOIN_GROUP, request, None, patience_ms, note=note
            )
            note.answered_member, note.answered_generation = (
                response.member_id,
                response.generation_id,
            )
            note.leads = (
                not response.error_code
                and response.leader == response.member_id
                and not response.skip_assignment
            )
            note.listed = tuple(
                each.member_id for each in response.members if each.group_instance_id is None
            )
            note.instances = tuple(
                (each.group_instance_id, each.member_id)
                for each in response.members
                if each.group_instance_id is not None
            )
            if response.error_code == _MEMBER_ID_REQUIRED:
                self.member_id = response.member_id
                continue
            break
        if response.error_code:
            raise GaveUp("join", response.error_code)
        self.member_id = response.member_id
        if "only_heartbeats" in settings.habits and self.rng.random() < _HABIT_SHARE:
            yield from self._only_heartbeat(response.generation_id)
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
        note = self._note("sync", self.member_id, generation)
        note.assignments = {each.member_id: each.assignment for each in assignments}
        answer = yield from self.ask_coordinator(
            GROUP, settings.group, ApiKey.SYNC_GROUP, sync, None, patience_ms, note=note
        )
        note.assigned = bytes(answer.assignment)
        if answer.error_code:
            raise GaveUp("sync", answer.error_code)
        yield from self._take_over(generation, answer.assignment)

    def _only_heartbeat(self, generation: int) -> CallSequence:
        """Send Heartbeats instead of SyncGroup until the coordinator has removed the member."""
        self.history.counts["members with only heartbeats"] += 1
        began_ms = self.history.now_ms()
        longest_ms = self.history.rebalance_ms[self.settings.group]
        error = yield from self._heartbeat_until(
            generation, began_ms + longest_ms + _ONLY_HEARTBEATS_MS, frozenset((0,))
        )
        if error:
            raise GaveUp("sync", error)

    def _assign(self, response: Any) -> list[SyncGroupRequestAssignment]:
        """Assign all partitions to the members in turn, from a random member on."""
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

    def _take_over(self, generation: int, blob: bytes) -> CallSequence:
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

    def _beat(self) -> CallSequence:
        settings = self.settings
        error = yield from self._heartbeat_once(self.member_id, self.generation)
        self._beat_ms = self.history.now_ms()
        if not error:
            return
        if error == _REBALANCING:
            yield from self._commit(self.member_id, self.generation)
            if "ignores" in settings.habits and self.rng.random() < _HABIT_SHARE:
                self.history.counts["rebalances ignored"] += 1
                error = yield from self._heartbeat_until(
                    self.generation, self._beat_ms + _IGNORING_MS, frozenset((0, _REBALANCING))
                )
        self._lost(error)

    def _leave(self) -> CallSequence:
        settings = self.settings
        request = LeaveGroupRequest(
            settings.group,
            self.member_id,
            [MemberIdentity(self.member_id, settings.instance_id)],
        )
        note = self._note("leave", self.member_id, self.generation)
        yield from self.ask_coordinator(
            GROUP, settings.group, ApiKey.LEAVE_GROUP, request, attempts=5, note=note
        )
        self.generation = -1
