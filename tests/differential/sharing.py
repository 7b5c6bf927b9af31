"""Members of share groups, for the cases that are about what they fetch and acknowledge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockbroker_protocol.messages.share_acknowledge import (
    AcknowledgementBatch as AcknowledgedBatch,
)
from mockbroker_protocol.messages.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from mockbroker_protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
)
from tests.differential.cases.consumer_groups import GROUP_RESOURCE, new_group, topic_of
from tests.differential.cases.share_groups import beat, catch_up, offsets
from tests.differential.cases.share_states import look, records
from tests.differential.dialogue import batch, produce_request
from tests.differential.session import Session

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
FINAL = -1
# Of fetches that find something: a real broker initializes the partition first, which takes seconds
# on a busy machine. Below `ANSWER_TIMEOUT_S`.
WAIT_MS = 15_000
# Of fetches that may find nothing. A real broker answers a fetch a moment before it lets another
# one read the same partition.
LOOK_MS = 60
# Of fetches for released records. A real broker looks at them before the release is written, and
# then only at the end of the wait.
RELEASED_MS = 300
# The same for fetches that wait already while the records are released: the test may be slow.
RELEASED_MEANWHILE_MS = 2_500
EARLIEST = {"share.auto.offset.reset": "earliest"}

Acks = Sequence[tuple[int, int, Sequence[int]]]  # first and last offset, acknowledge types
Wanted = Mapping[int, Acks]  # acknowledgements by partition


class Member:
    """A member of a share group, which has a connection and a share session of its own.

    Requests go with the session's next epoch unless one is given.
    """

    def __init__(self, session: Session, group: str, name: str, topic_id: bytes) -> None:
        self.session = session
        self.group = group
        self.name = name
        self.topic_id = topic_id
        self.epoch = 0

    def request(self, wanted: Wanted | None = None, **fields: Any) -> ShareFetchRequest:
        """A ShareFetch; `forgotten` are partitions, `topics` what else it names."""
        return ShareFetchRequest(
            group_id=fields.pop("group", self.group),
            member_id=fields.pop("member", self.name),
            share_session_epoch=self._next(fields.pop("epoch", None)),
            topics=[
                *([fetch_topic(self.topic_id, wanted)] if wanted is not None else []),
                *fields.pop("topics", ()),
            ],
            forgotten_topics_data=[
                ForgottenTopic(self.topic_id, list(forgotten))
                for forgotten in [fields.pop("forgotten", ())]
                if forgotten
            ],
            **{
                "max_wait_ms": WAIT_MS,
                "min_bytes": 1,
                "max_bytes": 1 << 20,
                "max_records": 500,
                "batch_size": 500,
                **fields,
            },
        )

    def fetch(
        self, wanted: Wanted | None = None, *, version: int = 2, label: str = "", **fields: Any
    ) -> Any:
        """ShareFetch; recorded."""
        request = self.request(wanted, **fields)
        return self.session.ask(request, version, self.name, f"{self.name} {label}".strip())

    def look(self, wanted: Wanted | None = None, **fields: Any) -> Any:
        """A fetch that hardly waits."""
        return self.fetch(wanted, **{"max_wait_ms": LOOK_MS, **fields})

    def start(self, wanted: Wanted | None = None, **fields: Any) -> Callable[..., Any]:
        """A fetch that waits; see `Session.start`."""
        return self.session.start(self.request(wanted, **fields), 2, self.name)

    def renew(self, wanted: Wanted, **fields: Any) -> Any:
        """ShareFetch that renews."""
        nothing = dict.fromkeys(("max_wait_ms", "min_bytes", "max_bytes", "max_records"), 0)
        return self.fetch(wanted, is_renew_ack=True, **{**nothing, **fields})

    def ack(
        self,
        wanted: Wanted | None = None,
        *,
        version: int = 2,
        label: str = "",
        epoch: int | None = None,
        renew: bool = False,
        topics: Sequence[AcknowledgeTopic] = (),
        **fields: Any,
    ) -> Any:
        """ShareAcknowledge; recorded."""
        request = ShareAcknowledgeRequest(
            group_id=fields.pop("group", self.group),
            member_id=fields.pop("member", self.name),
            share_session_epoch=self._next(epoch),
            is_renew_ack=renew,
            topics=[
                *([ack_topic(self.topic_id, wanted)] if wanted is not None else []),
                *topics,
            ],
        )
        return self.session.ask(request, version, self.name, f"{self.name} {label}".strip())

    def leave(self) -> None:
        """Close the session."""
        self.fetch(epoch=FINAL, label="closes", max_wait_ms=0)

    def _next(self, epoch: int | None) -> int:
        if epoch is not None:
            if epoch <= 0:
                self.epoch = epoch + 1
            return epoch
        self.epoch += 1
        return self.epoch - 1


class Shared:
    """A topic and a share group of the case's own. The group reads from the start.

    `configs` are the group's.
    """

    def __init__(
        self,
        session: Session,
        suffix: str = "",
        partitions: int = 1,
        *,
        topic_configs: Mapping[str, str] | None = None,
        **configs: str,
    ) -> None:
        self.session = session
        given = {name.replace("_", "."): value for name, value in configs.items()}
        self.group = new_group(session, suffix, **{**EARLIEST, **given})
        # Made after the topic that `new_group` waits for: by now the configs hold everywhere.
        self.topic, self.topic_id = topic_of(session, suffix, partitions)
        if topic_configs:
            alter_topic(session, self.topic, **topic_configs)
        joined = session.quietly(beat(self.group, "joined", 0, self.topic), 1)
        catch_up(session, self.group, "joined", joined.member_epoch)

    def beside(self, suffix: str, partitions: int = 1) -> Shared:
        """Another topic of the same group."""
        other = copy(self)
        other.topic, other.topic_id = topic_of(self.session, suffix, partitions)
        both = beat(self.group, "joined too", 0, self.topic, other.topic)
        joined = self.session.quietly(both, 1)
        catch_up(self.session, self.group, "joined too", joined.member_epoch)
        return other

    def member(self, name: str = "m") -> Member:
        return Member(self.session, self.group, name, self.topic_id)

    def warm(self, *partitions: int) -> None:
        """Let share partitions be there: each has one record, and it is accepted.

        A real broker answers a fetch of several partitions when the first of them is there.
        """
        for partition in partitions:
            self.produce(batch([b"warm"]), partition)
            who = self.member(f"{self.topic[-8:]}-{partition}")
            first = self.session.quietly(who.request({partition: []}), 2, who.name)
            row = first.responses[0].partitions[0]
            assert [each.last_offset for each in row.acquired_records] == [0], row
            accept = who.request({partition: [(0, 0, [ACCEPT])]}, epoch=FINAL)
            last = self.session.quietly(accept, 2, who.name)
            assert last.responses[0].partitions[0].acknowledge_error_code == ErrorCode.NONE

    def fill(self, *sizes: int, partition: int = 0, **options: Any) -> None:
        """Append batches of so many records."""
        for number, size in enumerate(sizes):
            values = [b"%d-%d" % (number, at) for at in range(size)]
            self.produce(batch(values, **options), partition)

    def produce(self, records: object, partition: int = 0) -> Any:
        request = produce_request(self.topic, records, partition=partition)
        answer = self.session.quietly(request, 9)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        return answer

    def stored(self, *partitions: int, written: bool = True) -> None:
        """The state that is persisted, the records of it, and the offsets that are described."""
        look(self.session, self.topic_id, *partitions, group=self.group)
        for partition in partitions or (0,):
            if written:
                records(self.session, self.topic_id, partition, group=self.group)
        offsets(self.session, self.group, {self.topic: list(partitions or (0,))})


def fetch_topic(topic_id: bytes, wanted: Wanted) -> FetchTopic:
    return FetchTopic(
        topic_id,
        [
            FetchPartition(
                index,
                [AcknowledgementBatch(first, last, list(types)) for first, last, types in acks],
            )
            for index, acks in wanted.items()
        ],
    )


def ack_topic(topic_id: bytes, wanted: Wanted) -> AcknowledgeTopic:
    return AcknowledgeTopic(
        topic_id,
        [
            AcknowledgePartition(
                index, [AcknowledgedBatch(first, last, list(types)) for first, last, types in acks]
            )
            for index, acks in wanted.items()
        ],
    )


def alter_topic(session: Session, topic: str, **configs: str) -> None:
    _alter(session, 2, topic, configs)


def alter_group(session: Session, group: str, **configs: str) -> None:
    """Change configs of a group; a real broker hears of them with the metadata."""
    _alter(session, GROUP_RESOURCE, group, configs)
    for number in range(2):
        topic_of(session, f"-after-{'-'.join(configs.values())}-{number}", 1)


def _alter(session: Session, kind: int, name: str, configs: Mapping[str, str]) -> None:
    resource = AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key.replace("_", "."), config_operation=0, value=value)
            for key, value in configs.items()
        ],
    )
    answer = session.quietly(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == ErrorCode.NONE, answer
