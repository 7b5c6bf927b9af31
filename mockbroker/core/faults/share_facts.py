"""What rules see of share groups: acknowledgements in requests, delivery counts in answers.

A ShareAcknowledge has acknowledgements, and so may a ShareFetch. Only the answer to a ShareFetch
has delivery counts. A rule on these is therefore decided once the request is applied, and all its
effects follow that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from mockbroker_protocol import ApiKey

SHARE_FETCH = int(ApiKey.SHARE_FETCH)
SHARE_ACKNOWLEDGE = int(ApiKey.SHARE_ACKNOWLEDGE)
ACKNOWLEDGING = frozenset((SHARE_FETCH, SHARE_ACKNOWLEDGE))

ACKNOWLEDGE_TYPES = {"gap": 0, "accept": 1, "release": 2, "reject": 3, "renew": 4}


class PartitionId(NamedTuple):
    """A partition as the requests of share groups name it."""

    topic_id: bytes
    partition: int


def acknowledgements(api_key: int, request: Any) -> Iterator[tuple[PartitionId, frozenset[int]]]:
    """The acknowledge types of each partition that a request acknowledges records of."""
    if api_key not in ACKNOWLEDGING:
        return
    for topic in request.topics:
        for partition in topic.partitions:
            types: set[int] = set()
            for batch in partition.acknowledgement_batches:
                types.update(batch.acknowledge_types)
            if types:
                yield PartitionId(topic.topic_id, partition.partition_index), frozenset(types)


def deliveries(response: Any, fits: Callable[[int], bool]) -> Iterator[PartitionId]:
    """The partitions of a ShareFetch answer with a record of a fitting delivery count."""
    for topic in response.responses:
        for row in topic.partitions:
            if any(fits(acquired.delivery_count) for acquired in row.acquired_records or ()):
                yield PartitionId(topic.topic_id, row.partition_index)
