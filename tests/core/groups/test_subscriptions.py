"""What the broker makes of the subscriptions that members exchange."""

from __future__ import annotations

from mockbroker.core.groups.subscriptions import subscribed_topics
from mockbroker_protocol.consumer_protocol import (
    ConsumerProtocolSubscription,
    encode_subscription,
)
from tests.support.group_playbook import Playbook, join, leave, sync


def blob(*topics: str, version: int = 3) -> bytes:
    subscription = ConsumerProtocolSubscription(list(topics), b"user", [], 4, "rack")
    return encode_subscription(subscription, version)


def test_the_topics_of_all_members_in_any_version() -> None:
    """A version that is not known yet begins like the ones that are."""
    play = Playbook()
    play >> join("a", member_id_required=False, protocols=(("range", blob("t", "u", version=0)),))
    play.take_all()
    play >> join("b", member_id_required=False, protocols=(("range", b"\0\x63" + blob("v")[2:]),))
    play >> join("a1", "a", protocols=(("range", blob("t", "u", version=0)),))
    play.take_all()
    assert subscribed_topics(play.group) == {"t", "u", "v"}
    assert play.group.is_subscribed("v")
    assert not play.group.is_subscribed("w")


def test_what_cannot_be_read_counts_as_everything() -> None:
    for garbage in (b"", b"\0", b"\0\0\0\0\0\2\0\1t"):
        play = Playbook().stable("a", protocols=(("range", garbage),))
        assert subscribed_topics(play.group) is None
        assert play.group.is_subscribed("t")


def test_before_the_first_generation_everything_may_be_read() -> None:
    play = Playbook(initial_rebalance_delay_ms=1_000)
    play >> join("a", member_id_required=False, protocols=(("range", blob("t")),))
    assert play.group.is_subscribed("anything")


def test_an_empty_group_reads_nothing() -> None:
    play = Playbook().stable("a", protocols=(("range", blob("t")),))
    play >> leave("x", "a")
    play.take_all()
    assert subscribed_topics(play.group) == set()


def test_groups_of_other_kinds_read_nothing() -> None:
    play = Playbook()
    play >> join("a", member_id_required=False, protocol_type="connect")
    play.take_all()
    play >> sync("a", 1, assignments={})
    play.take_all()
    assert not play.group.is_subscribed("t")
    assert not Playbook().group.is_subscribed("t")


def test_members_that_change_their_mind_count_from_the_next_generation_on() -> None:
    play = Playbook().stable("a", protocols=(("range", blob("t")),))
    play >> join("b", member_id_required=False, protocols=(("range", blob("u")),))
    assert subscribed_topics(play.group) == {"t"}
    play >> join("a1", "a", protocols=(("range", blob("v")),))
    play.take_all()
    assert subscribed_topics(play.group) == {"u", "v"}
