"""Rights to fetch and acknowledge records of share groups, and the limit of share sessions."""

from __future__ import annotations

from mockbroker.core.security.acls import AclOperation
from tests.differential.cases.share_fetch import UNKNOWN_ID
from tests.differential.cases.share_groups import altering
from tests.differential.dialogue import batch, produce_request
from tests.differential.secured.session import GROUP, TOPIC, AclSession, case
from tests.differential.sharing import ACCEPT, FINAL, Member, Wanted, ack_topic, fetch_topic


def fill(session: AclSession, topic: str) -> None:
    session.quietly(produce_request(topic, batch([b"a", b"b", b"c"])), 9, "admin")


def share(session: AclSession, *topics: str) -> str:
    """A share group that reads the topics from the start, without a member."""
    group = f"{session.name}-group"
    session.coordinator(group)
    session.without_error(
        altering(group, {topic: {0: 0} for topic in topics}),
        0,
        lambda answer: (
            answer.error_code
            or any(p.error_code for topic in answer.responses for p in topic.partitions)
        ),
    )
    return group


class User(Member):
    """A member on the connection of alice."""

    def __init__(self, session: AclSession, group: str, topic: str) -> None:
        super().__init__(session, group, "main", session.topic_id(topic))


@case
def share_requests_need_the_group(session: AclSession) -> None:
    topic = session.topic()
    group = share(session, topic)
    fill(session, topic)
    user = User(session, group, topic)
    accept: Wanted = {0: [(0, 0, [ACCEPT])]}
    user.fetch({0: []}, epoch=0, label="nothing")
    user.ack(accept, epoch=1, label="nothing")
    session.allow(AclOperation.READ, TOPIC, topic)
    session.allow(AclOperation.DESCRIBE, GROUP, group)
    user.fetch({0: []}, epoch=0, label="the topic")
    user.ack(accept, epoch=1, label="the topic")
    session.allow(AclOperation.READ, GROUP, group)
    user.fetch({0: []}, epoch=0, label="both")
    user.ack(accept, label="both")
    user.look({0: [(1, 1, [ACCEPT])]}, label="both")
    user.leave()


@case
def share_requests_need_their_topics(session: AclSession) -> None:
    mine, other = session.topic("-mine"), session.topic("-other")
    group = share(session, mine, other)
    fill(session, mine)
    fill(session, other)
    session.allow(AclOperation.READ, GROUP, group)
    session.allow(AclOperation.READ, TOPIC, mine)
    session.allow(AclOperation.DESCRIBE, TOPIC, other)
    user = User(session, group, mine)
    user.fetch({0: []}, epoch=0, label="mine")
    others = session.topic_id(other)
    accept: Wanted = {0: [(0, 0, [ACCEPT])]}
    user.look(topics=[fetch_topic(others, {0: []})], label="the other")
    user.look(topics=[fetch_topic(others, accept)], label="accepts of the other")
    user.look({0: [(0, 0, [9])]}, topics=[fetch_topic(others, {0: []})], label="a wrong type")
    user.ack(topics=[ack_topic(others, accept)], label="of the other")
    user.ack(accept, topics=[ack_topic(others, accept)], label="of both")
    user.ack(topics=[ack_topic(others, {0: []})], label="of the other, empty")
    user.ack(topics=[ack_topic(others, {5: [(0, 0, [ACCEPT])]})], label="of no partition")
    user.look(label="still there")
    session.deny(AclOperation.READ, TOPIC, mine)
    user.look(label="no more")
    user.ack({0: [(1, 1, [ACCEPT])]}, label="no more")
    user.leave()


@case
def share_requests_with_unknown_topics(session: AclSession) -> None:
    """With an authorizer such a request fails whole, and applies nothing."""
    topic = session.topic()
    group = share(session, topic)
    fill(session, topic)
    session.allow(AclOperation.READ, GROUP, group)
    session.allow(AclOperation.READ, TOPIC, topic)
    user = User(session, group, topic)
    accept: Wanted = {0: [(0, 0, [ACCEPT])]}
    user.fetch({0: []}, epoch=0, label="opens")
    user.ack(accept, topics=[ack_topic(UNKNOWN_ID, accept)], label="one unknown")
    user.ack(topics=[ack_topic(UNKNOWN_ID, {})], label="unknown, no partitions")
    user.ack(topics=[ack_topic(UNKNOWN_ID, {0: []})], label="unknown, empty")
    user.ack(accept, label="accepts")
    user.look(accept, topics=[fetch_topic(UNKNOWN_ID, accept)], label="one unknown")
    user.look({0: [(1, 1, [ACCEPT])]}, label="unknown is in the session")
    user.ack({0: [(1, 1, [ACCEPT])]}, label="acknowledges")
    user.look(topics=[fetch_topic(UNKNOWN_ID, accept)], epoch=FINAL, label="closes")
    user.look(label="is it closed")
    user.ack({0: [(2, 2, [ACCEPT])]}, topics=[ack_topic(UNKNOWN_ID, accept)], epoch=FINAL)
    user.ack({0: [(2, 2, [ACCEPT])]}, label="is it closed", epoch=FINAL)
    user.fetch({0: []}, epoch=0, label="anew", max_wait_ms=300)
    user.leave()


@case
def share_sessions_are_limited(session: AclSession) -> None:
    """To two here. One is gone when its member closes it, or its connection ends."""
    topic = session.topic()
    group = share(session, topic)
    fill(session, topic)
    who = session.topic_id(topic)
    users = [Member(session, group, f"admin {number}", who) for number in range(4)]
    users[0].fetch({0: []}, epoch=0, label="opens")
    users[0].ack({0: [(0, 2, [ACCEPT])]})
    users[1].look({0: []}, epoch=0, label="opens")
    users[2].look({0: []}, epoch=0, label="one too many")
    users[2].fetch({0: []}, epoch=0, label="one too many, waits", max_wait_ms=200)
    users[0].look({0: []}, epoch=0, label="begins anew")
    users[0].look(label="goes on")
    users[0].leave()
    users[2].look({0: []}, epoch=0, label="in its place")
    users[3].look({0: []}, epoch=0, label="one too many")
    users[1].leave()
    users[2].leave()
