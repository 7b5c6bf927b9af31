"""The topics to which the members of a classic consumer group subscribe.

The coordinator keeps subscriptions as opaque bytes. It decodes them for one purpose: offsets of
subscribed topics are not deleted and do not expire (KIP-496). A subscription that cannot be decoded
counts as a subscription to all topics. Source: ClassicGroup.isSubscribedToTopic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker_protocol.codec import named_codec
from mockbroker_protocol.exceptions import DecodeError

if TYPE_CHECKING:
    from mockbroker.core.groups.classic import ClassicGroup

VERSION_BYTES = 2


def subscribed_topics(group: ClassicGroup) -> set[str] | None:
    """The topics of all members of the current generation; None if they are not known."""
    if not group.is_consumer() or group.subscriptions is None:
        return None
    # Each version begins with the fields of v0, which include the topics.
    decode = named_codec("consumer_protocol", "ConsumerProtocolSubscription", 0).decode
    topics: set[str] = set()
    for blob in group.subscriptions:
        try:
            topics.update(decode(blob, VERSION_BYTES)[0].topics)
        except DecodeError:
            return None
    return topics
