"""Members of groups and their partitions, from answers of the coordinator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from mockbroker.core.journal.entries import Entry, RequestEntry, ResponseEntry
from mockbroker.core.journal.journal import ConnectedClient
from mockbroker.core.journal.messages import DecodedRequest, decode_request, decode_response
from mockbroker.pipeline.past.image import PastCluster, PastGroup, PastMember, PastTransaction
from mockbroker_protocol import ApiKey
from mockbroker_protocol.consumer_protocol import decode_assignment
from mockbroker_protocol.exceptions import DecodeError

# The answers that are opened.
MEMBER_APIS = frozenset(
    map(
        int,
        (
            ApiKey.JOIN_GROUP,
            ApiKey.SYNC_GROUP,
            ApiKey.LEAVE_GROUP,
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            ApiKey.SHARE_GROUP_HEARTBEAT,
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            ApiKey.INIT_PRODUCER_ID,
        ),
    )
)
_UNKNOWN_PRODUCER = -1

Assigned = dict[str, tuple[int, ...]]


class Members:
    """Opens answers. `entry` gives a request by its number, `client` a connection."""

    def __init__(
        self,
        entry: Callable[[int], Entry | None],
        client: Callable[[int], ConnectedClient | None],
        topic_name: Callable[[bytes], str | None],
    ) -> None:
        self._entry = entry
        self._client = client
        self._topic_name = topic_name
        self._on_answer: dict[int, Callable[[PastCluster, Any, Any, PastMember], None]] = {
            int(ApiKey.JOIN_GROUP): self._joined,
            int(ApiKey.SYNC_GROUP): self._synced,
            int(ApiKey.LEAVE_GROUP): self._left,
            int(ApiKey.CONSUMER_GROUP_HEARTBEAT): self._heartbeat,
            int(ApiKey.SHARE_GROUP_HEARTBEAT): self._heartbeat,
            int(ApiKey.STREAMS_GROUP_HEARTBEAT): self._streams_heartbeat,
        }

    def answered(self, image: PastCluster, entry: ResponseEntry) -> None:
        """Apply an answer to a member; one with an error changes nothing."""
        request = self._entry(entry.request_seq)
        response = decode_response(entry)
        if not isinstance(request, RequestEntry) or response is None or response.error_code:
            return
        opened = decode_request(request.frame)
        if opened.message is None:
            return
        if entry.api_key == ApiKey.INIT_PRODUCER_ID:
            _initialized(image, opened.message, response)
            return
        asks = self._asks(request, opened)
        self._on_answer[entry.api_key](image, opened.message, response, asks)

    def producer_of(self, request_seq: int) -> int:
        """The producer id of a TxnOffsetCommit; -1 if the request is gone."""
        request = self._entry(request_seq)
        if not isinstance(request, RequestEntry):
            return _UNKNOWN_PRODUCER
        message = decode_request(request.frame).message
        return int(getattr(message, "producer_id", _UNKNOWN_PRODUCER))

    def _asks(self, request: RequestEntry, opened: DecodedRequest) -> PastMember:
        """The member with the values of its request."""
        client = self._client(request.connection_id)
        message = opened.message
        return PastMember(
            member_id=getattr(message, "member_id", ""),
            client_id=opened.header.client_id,
            host=None if client is None else f"/{client.client_host}",
            instance_id=getattr(message, "group_instance_id", None)
            or getattr(message, "instance_id", None),
            generation=-1,
            assigned=None,
        )

    # -- classic groups ----------------------------------------------------------------------------

    def _joined(self, image: PastCluster, message: Any, response: Any, asks: PastMember) -> None:
        member = replace(asks, member_id=response.member_id, generation=response.generation_id)
        _put(image, message.group_id, member, protocol=response.protocol_name)

    def _synced(self, image: PastCluster, message: Any, response: Any, asks: PastMember) -> None:
        assigned: Assigned | None = None
        try:
            if response.assignment:
                found = decode_assignment(response.assignment)
                assigned = {
                    topic.topic: tuple(topic.partitions) for topic in found.assigned_partitions
                }
            else:
                assigned = {}
        except DecodeError:
            assigned = None  # of another protocol than consumers'
        member = replace(asks, generation=message.generation_id, assigned=assigned)
        _put(image, message.group_id, member)

    def _left(self, image: PastCluster, message: Any, response: Any, asks: PastMember) -> None:  # noqa: ARG002
        for member_id in (message.member_id, *(each.member_id for each in message.members)):
            _remove(image, message.group_id, member_id)

    # -- the others --------------------------------------------------------------------------------

    def _heartbeat(self, image: PastCluster, message: Any, response: Any, asks: PastMember) -> None:
        member_id = response.member_id or message.member_id
        if message.member_epoch < 0:
            _remove(image, message.group_id, member_id)
            return
        assigned: Assigned | None = None
        if response.assignment is not None:
            assigned = {
                self._topic_name(topic.topic_id) or topic.topic_id.hex(): tuple(topic.partitions)
                for topic in response.assignment.topic_partitions
            }
        member = replace(
            asks, member_id=member_id, generation=response.member_epoch, assigned=assigned
        )
        _put(image, message.group_id, member)

    def _streams_heartbeat(
        self, image: PastCluster, message: Any, response: Any, asks: PastMember
    ) -> None:
        member_id = response.member_id or message.member_id
        if message.member_epoch < 0:
            _remove(image, message.group_id, member_id)
            return
        assigned = _tasks(response.active_tasks)
        member = replace(
            asks, member_id=member_id, generation=response.member_epoch, assigned=assigned
        )
        _put(image, message.group_id, member)


def _tasks(tasks: Iterable[Any] | None) -> Assigned | None:
    """The active tasks of a streams member, by subtopology."""
    if tasks is None:
        return None
    return {task.subtopology_id: tuple(task.partitions) for task in tasks}


def _put(image: PastCluster, group: str, member: PastMember, protocol: str | None = None) -> None:
    """Add or change a member. Without partitions it keeps those that it had."""
    known = image.groups.get(group) or PastGroup(group, None, None, None, None, None, {})
    if known.members is None:
        return
    before = known.members.get(member.member_id)
    if before is not None and member.assigned is None:
        member = replace(member, assigned=before.assigned)
    if before == member and protocol in (None, known.protocol):
        return
    image.groups[group] = replace(
        known,
        members={**known.members, member.member_id: member},
        protocol=protocol or known.protocol,
    )


def _remove(image: PastCluster, group: str, member_id: str) -> None:
    known = image.groups.get(group)
    if known is not None and known.members is not None and member_id in known.members:
        members = {name: each for name, each in known.members.items() if name != member_id}
        image.groups[group] = replace(known, members=members)


def _initialized(image: PastCluster, message: Any, response: Any) -> None:
    """InitProducerId has the timeout of a transactional id, and of a new one its producer."""
    name = message.transactional_id
    if name is None:
        return
    known = image.transactions.get(name) or PastTransaction(
        name, "Empty", None, response.producer_id, response.producer_epoch, None, -1
    )
    image.transactions[name] = replace(known, timeout_ms=message.transaction_timeout_ms)
