"""Changes: the head of a frame, and frames of whole images.

The first frames of a file are *parts* of an image; the last of them completes it. Each later frame
holds the changes since the one before, and is applied as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import msgspec

from mockbroker.core.snapshot.frames import frame
from mockbroker.core.snapshot.image import ClusterImage, PartitionImage, SettingsImage
from mockbroker.core.snapshot.logs import LogDelta, changes_of_whole

PART_BYTES_MAX = 4 * 1024 * 1024
PART_LOGS_MAX = 2000

ENCODER = msgspec.msgpack.Encoder()


class Stage(IntEnum):
    """The content of a frame."""

    PART = 0  # part of an image that continues in the next frame
    LAST_PART = 1
    CHANGE = 2


class TopicDelta(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A new topic, or a topic with changed overrides."""

    topic_id: bytes
    name: str
    overrides: dict[str, str]


class PartitionDelta(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A new or changed partition."""

    topic_id: bytes
    index: int
    image: PartitionImage


class ClusterDelta(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The head of a frame; its body has the bytes of `logs`, in their order.

    `settings` is a SettingsImage as msgpack, empty without a change; `gone` are the ids of deleted
    topics.
    """

    stage: Stage
    at_ms: int
    ids_state: int
    producer_block: int
    settings: bytes = b""
    gone: list[bytes] = []
    topics: list[TopicDelta] = []
    partitions: list[PartitionDelta] = []
    logs: list[LogDelta] = []


DECODER = msgspec.msgpack.Decoder(ClusterDelta)
SETTINGS_DECODER = msgspec.msgpack.Decoder(SettingsImage)


def image_frames(image: ClusterImage) -> Iterator[list[bytes | memoryview]]:
    """The frames of a whole image; each is a list of pieces to write."""
    logs = (
        part
        for log_id, log in image.logs.items()
        for part in changes_of_whole(log_id, log, PART_BYTES_MAX)
    )
    settings = ENCODER.encode(image.settings)
    topics = [TopicDelta(t.topic_id, t.name, t.overrides) for t in image.topics]
    partitions = [
        PartitionDelta(topic.topic_id, index, partition)
        for topic in image.topics
        for index, partition in enumerate(topic.partitions)
    ]
    stage = Stage.PART
    while stage is Stage.PART:
        changes: list[LogDelta] = []
        body: list[memoryview] = []
        size = 0
        while size < PART_BYTES_MAX and len(changes) < PART_LOGS_MAX:
            following = next(logs, None)
            if following is None:
                stage = Stage.LAST_PART
                break
            change, pieces = following
            changes.append(change)
            body += pieces
            size += change.tail_bytes
        head = ClusterDelta(
            stage,
            image.at_ms,
            image.ids.state,
            image.ids.producer_block,
            settings,
            topics=topics,
            partitions=partitions,
            logs=changes,
        )
        yield frame(ENCODER.encode(head), body)
        settings, topics, partitions = b"", [], []
