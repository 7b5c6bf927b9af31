"""Members of share groups (KIP-932).

A member fetches from the leaders of its partitions, in a share session with each, and acknowledges
what it has acquired: with its next ShareFetch, or with ShareAcknowledge.

Source: ShareConsumerImpl, ShareConsumeRequestManager, ShareSessionHandler.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mockbroker.core.ids import uuid_text
from mockbroker.simulation.clients.base import GROUP, CallSequence, SimulatedClient
from mockbroker.simulation.script import Call, Disconnected, RequestTimedOut, Script
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages import alter_share_group_offsets as altering
from mockbroker_protocol.messages import delete_share_group_offsets as deleting
from mockbroker_protocol.messages import share_acknowledge as acknowledging
from mockbroker_protocol.messages import share_fetch as fetching
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockbroker_protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
_OPENING, _CLOSING = 0, -1  # epochs of a share session
_JOIN_EPOCH, _LEAVE_EPOCH = 0, -1
_RENEW_SINCE = 2
_GROUP_RESOURCE = 32  # ConfigResource.Type
_SET = 0
_MAX_WAIT_MS = 200
_FETCH_BYTES = 16_384
_LAPSE_SHARE = 0.2
_RENEW_SHARE = 0.3
_STALE_SHARE = 0.1
_RETURN_SHARE = 0.1
_FENCED = frozenset((int(ErrorCode.FENCED_MEMBER_EPOCH), int(ErrorCode.UNKNOWN_MEMBER_ID)))

Key = tuple[bytes, int]  # topic id and partition


class _Acknowledged(NamedTuple):
    """A range of offsets, with one acknowledge type for all or one for each."""

    first: int
    last: int
    types: list[int]


class _Session:
    """The share session with one broker; `pending` are acknowledgements that were not sent yet."""

    def __init__(self) -> None:
        self.epoch = _OPENING
        self.listed: set[Key] = set()
        self.pending: dict[Key, list[_Acknowledged]] = {}

    def reset(self) -> None:
        """Open another session with the next request; acquired records are lost to the member."""
        self.epoch = _OPENING
        self.listed.clear()
        self.pending.clear()

    def advance(self) -> None:
        self.epoch += 1

    def take_pending(self) -> dict[Key, list[_Acknowledged]]:
        taken, self.pending = self.pending, {}
        return taken


class ShareMember(SimulatedClient):
    """One member. A fetch asks for at most one of `records_max` records. The member acknowledges
    them with one of `types`.
    """

    records_max: tuple[int, ...] = (1, 2, 5, 50)
    types: tuple[int, ...] = (ACCEPT, ACCEPT, ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT)

    def start(self) -> CallSequence:
        """Get ready to join."""
        self.member_id = uuid_text(self.rng.randbytes(16))
        self.epoch: int = _JOIN_EPOCH
        self._beat_ms = self._interval_ms = 0
        self.failures = 0  # fetches without records for some reason
        self.assigned: list[Key] = []
        self._sessions: dict[int, _Session] = {}
        yield from self.refresh()
        yield from self._read_from_start()

    def live(self) -> Script:
        if self.versions.of(ApiKey.SHARE_FETCH) < 0:
            return
        yield from self.start()
        for _ in range(self.settings.operations):
            yield self.pause()
            if self.epoch > 0 and self._falls_into("returns", _RETURN_SHARE):
                self.member_id = uuid_text(self.rng.randbytes(16))
                self._rejoin()
            yield from self.round()
        if self.rng.random() < 0.7:
            yield from self.leave()

    def round(self) -> CallSequence:
        """A heartbeat if it is time for one, and a fetch from each leader."""
        now_ms = self.history.now_ms()
        if self.epoch == _JOIN_EPOCH or now_ms - self._beat_ms >= self._interval_ms:
            yield from self._beat()
        yield from self._poll()

    def _falls_into(self, habit: str, share: float) -> bool:
        return habit in self.settings.habits and self.rng.random() < share

    # -- the group ---------------------------------------------------------------------------------

    def _read_from_start(self) -> CallSequence:
        """Let the group begin with the first record of each partition."""
        config = AlterableConfig("share.auto.offset.reset", _SET, "earliest")
        resource = AlterConfigsResource(_GROUP_RESOURCE, self.settings.group, [config])
        yield from self._ask_once(
            self.any_node(),
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            IncrementalAlterConfigsRequest([resource]),
        )

    def _ask_once(self, node_id: int, api: ApiKey, request: Any) -> CallSequence:
        """The answer of a broker; None without an answer."""
        try:
            response = yield Call(node_id, api, self.versions.of(api), request, self.patience_ms())
        except (Disconnected, RequestTimedOut):
            return None
        return response

    def _rejoin(self) -> None:
        self.epoch = _JOIN_EPOCH
        self.assigned = []
        self._sessions.clear()

    def _beat(self) -> CallSequence:
        joins = self.epoch == _JOIN_EPOCH
        names = list(self.settings.topics) if joins else None
        response = yield from self._heartbeat("join" if joins else "heartbeat", self.epoch, names)
        self._beat_ms = self.history.now_ms()
        if response.error_code:
            if response.error_code in _FENCED:
                self._rejoin()
            yield self.backoff(2)
            return
        self.epoch = response.member_epoch
        self._interval_ms = response.heartbeat_interval_ms
        if response.assignment is not None:
            self.history.counts["share assignments taken"] += 1
            self.assigned = [
                (topic.topic_id, index)
                for topic in response.assignment.topic_partitions
                for index in topic.partitions
            ]
            if any(self.topic_name(topic_id) is None for topic_id, _ in self.assigned):
                yield from self.refresh()

    def _heartbeat(
        self, what: str, epoch: int, names: list[str] | None = None, attempts: int = 40
    ) -> CallSequence:
        group = self.settings.group
        request = ShareGroupHeartbeatRequest(
            group_id=group,
            member_id=self.member_id,
            member_epoch=epoch,
            subscribed_topic_names=names,
        )
        note = self.history.group_call(what, "share", group, self.name, self.member_id, None, epoch)
        response = yield from self.ask_coordinator(
            GROUP,
            group,
            ApiKey.SHARE_GROUP_HEARTBEAT,
            request,
            attempts=attempts,
            note=note,
        )
        note.answered_generation = response.member_epoch
        return response

    def leave(self) -> CallSequence:
        for node_id, session in list(self._sessions.items()):
            if session.epoch != _OPENING:
                yield from self._acknowledge(node_id, session, session.take_pending(), closes=True)
        self._sessions.clear()
        if self.epoch > 0:
            yield from self._heartbeat("leave", _LEAVE_EPOCH, attempts=5)
            self.epoch = _JOIN_EPOCH
        if "resets_offsets" in self.settings.habits:
            yield from self._reset_offsets()

    def _reset_offsets(self) -> CallSequence:
        """Alter or delete the start offsets of the group; refused while it has members."""
        group, topic = self.settings.group, self.rng.choice(self.settings.topics)
        node_id = yield from self.coordinator(GROUP, group)
        if self.rng.random() < 0.7:
            rows = [
                altering.AlterShareGroupOffsetsRequestPartition(index, self.rng.randint(0, 10))
                for index in self.partitions_of(topic)
            ]
            request: Any = altering.AlterShareGroupOffsetsRequest(
                group, [altering.AlterShareGroupOffsetsRequestTopic(topic, rows)]
            )
            yield from self._ask_once(node_id, ApiKey.ALTER_SHARE_GROUP_OFFSETS, request)
            return
        request = deleting.DeleteShareGroupOffsetsRequest(
            group, [deleting.DeleteShareGroupOffsetsRequestTopic(topic)]
        )
        yield from self._ask_once(node_id, ApiKey.DELETE_SHARE_GROUP_OFFSETS, request)

    # -- records -----------------------------------------------------------------------------------

    def _poll(self) -> CallSequence:
        """Fetch from each leader once."""
        by_node: dict[int, list[Key]] = {}
        for topic_id, index in self.assigned:
            leader = self.leader(self.topic_name(topic_id) or "", index)
            if leader is not None and leader.topic_id == topic_id:
                by_node.setdefault(leader.node_id, []).append((topic_id, index))
        if self.assigned and not by_node:
            yield from self.refresh()
            return
        for node_id in list(by_node):
            session = self._sessions.setdefault(node_id, _Session())
            yield from self._fetch(node_id, session, by_node[node_id])

    def _fetch(self, node_id: int, session: _Session, wanted: list[Key]) -> CallSequence:
        if session.pending and "explicit" in self.settings.habits:
            taken = session.take_pending()
            yield from self._acknowledge(node_id, session, taken)
        if session.epoch != _OPENING and self._falls_into("stale_requests", _STALE_SHARE):
            yield from self._send_stale(node_id, session)
        opens = session.epoch == _OPENING
        taken = {} if opens else session.take_pending()
        listed = [key for key in wanted if key not in session.listed or key in taken]
        listed += [key for key in taken if key not in wanted]
        forgotten = [key for key in session.listed if key not in wanted]
        request = self._request(session.epoch, listed, forgotten, taken)
        session.listed = set(wanted)
        response = yield from self._ask_once(node_id, ApiKey.SHARE_FETCH, request)
        if response is None or response.error_code:
            self.failures += 1
            session.reset()
            self._sessions.pop(node_id, None)
            yield self.backoff()
            return
        session.advance()
        moved = False
        for topic in response.responses:
            for data in topic.partitions:
                moved |= data.error_code != 0
                self._count_acknowledged(taken, (topic.topic_id, data.partition_index), data)
                yield from self._decide(node_id, session, topic.topic_id, data)
        if moved:
            self.failures += 1
            yield from self.refresh()

    def _count_acknowledged(
        self, taken: dict[Key, list[_Acknowledged]], key: Key, data: Any
    ) -> None:
        if key in taken:
            refused = data.acknowledge_error_code != 0
            what = "refused" if refused else "done"
            self.history.counts[f"share acknowledgements {what}"] += 1

    def _request(
        self,
        epoch: int,
        listed: list[Key],
        forgotten: list[Key],
        taken: dict[Key, list[_Acknowledged]],
    ) -> fetching.ShareFetchRequest:
        topics: dict[bytes, fetching.FetchTopic] = {}
        for topic_id, index in listed:
            topic = topics.setdefault(topic_id, fetching.FetchTopic(topic_id, []))
            batches = [
                fetching.AcknowledgementBatch(*each) for each in taken.get((topic_id, index), ())
            ]
            topic.partitions.append(fetching.FetchPartition(index, batches))
        gone: dict[bytes, fetching.ForgottenTopic] = {}
        for topic_id, index in forgotten:
            gone.setdefault(topic_id, fetching.ForgottenTopic(topic_id, [])).partitions.append(
                index
            )
        records_max = self.rng.choice(self.records_max)
        return fetching.ShareFetchRequest(
            group_id=self.settings.group,
            member_id=self.member_id,
            share_session_epoch=epoch,
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            max_records=records_max,
            batch_size=records_max,
            share_acquire_mode=self.rng.choice((0, 1)),
            topics=list(topics.values()),
            forgotten_topics_data=list(gone.values()),
        )

    def _decide(self, node_id: int, session: _Session, topic_id: bytes, data: Any) -> CallSequence:
        """Decide what becomes of the acquired records."""
        key = (topic_id, data.partition_index)
        for acquired in data.acquired_records:
            first, last = acquired.first_offset, acquired.last_offset
            counts = self.history.counts
            counts["share records acquired"] += last - first + 1
            counts["share records redelivered"] += acquired.delivery_count > 1
            if self._falls_into("lapses", _LAPSE_SHARE):
                continue
            if self._falls_into("renews", _RENEW_SHARE) and session.epoch != _OPENING:
                yield from self._acknowledge(
                    node_id, session, {key: [_Acknowledged(first, last, [RENEW])]}
                )
            if self.rng.random() < 0.5:
                types = [self.rng.choice(self.types)]
            else:
                types = [self.rng.choice(self.types) for _ in range(first, last + 1)]
            if session.epoch != _OPENING:
                session.pending.setdefault(key, []).append(_Acknowledged(first, last, types))

    def _acknowledge(
        self,
        node_id: int,
        session: _Session,
        taken: dict[Key, list[_Acknowledged]],
        *,
        closes: bool = False,
    ) -> CallSequence:
        """Send ShareAcknowledge."""
        renews = any(each.types == [RENEW] for some in taken.values() for each in some)
        version = self.versions.of(ApiKey.SHARE_ACKNOWLEDGE)
        if renews and version < _RENEW_SINCE:
            return
        request = self._acknowledgement(_CLOSING if closes else session.epoch, taken)
        request.is_renew_ack = renews
        response = yield from self._ask_once(node_id, ApiKey.SHARE_ACKNOWLEDGE, request)
        if response is None or response.error_code:
            session.reset()
            return
        session.advance()
        for topic in response.responses:
            for data in topic.partitions:
                what = "refused" if data.error_code else "done"
                self.history.counts[f"share acknowledgements {what}"] += 1

    def _acknowledgement(
        self, epoch: int, taken: dict[Key, list[_Acknowledged]]
    ) -> acknowledging.ShareAcknowledgeRequest:
        topics: dict[bytes, acknowledging.AcknowledgeTopic] = {}
        for (topic_id, index), some in taken.items():
            topic = topics.setdefault(topic_id, acknowledging.AcknowledgeTopic(topic_id, []))
            batches = [acknowledging.AcknowledgementBatch(*each) for each in some]
            topic.partitions.append(acknowledging.AcknowledgePartition(index, batches))
        return acknowledging.ShareAcknowledgeRequest(
            group_id=self.settings.group,
            member_id=self.member_id,
            share_session_epoch=epoch,
            topics=list(topics.values()),
        )

    def _send_stale(self, node_id: int, session: _Session) -> CallSequence:
        """Send an epoch that is not the session's, which must be refused."""
        request = self._acknowledgement(session.epoch + 1, {})
        response = yield from self._ask_once(node_id, ApiKey.SHARE_ACKNOWLEDGE, request)
        if response is None:
            session.reset()
            return
        self.history.counts["stale share requests answered"] += 1
        if not response.error_code:
            self.history.misfits.append(
                f"{self.name} was answered in its share session with broker {node_id} with the "
                f"epoch {session.epoch + 1}, and the session expects {session.epoch}"
            )
        if response.error_code != int(ErrorCode.INVALID_SHARE_SESSION_EPOCH):
            session.reset()
