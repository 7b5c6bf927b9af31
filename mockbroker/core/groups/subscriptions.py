"""Which topics the members of a consumer group read, as far as the broker can tell.

The coordinator keeps subscriptions as opaque bytes. It reads them for one purpose: offsets of a
topic that somebody reads are neither deleted nor do they expire (KIP-496). What cannot be read
counts as "everything", as in ClassicGroup.isSubscribedToTopic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker_protocol.codec import named_codec
from mockbroker_protocol.exceptions import DecodeError

if TYPE_CHECKING:
    from mockbroker.core.groups.classic import ClassicGroup

VERSION_BYTES = 2


def subscribed_topics(group: ClassicGroup) -> set[str] | None:
    """The topics of all members of the current generation; None when that is not known."""
    if not group.is_consumer() or group.subscriptions is None:
        return None
    # Every version begins with the fields of v0, and topics are all that is wanted.
    decode = named_codec("consumer_protocol", "ConsumerProtocolSubscription", 0).decode
    topics: set[str] = set()
    for blob in group.subscriptions:
        try:
            topics.update(decode(blob, VERSION_BYTES)[0].topics)
        except DecodeError:
            return None
    return topics
