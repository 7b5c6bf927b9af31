"""ShareAcknowledge: results by partition, sessions, and refusals."""

from __future__ import annotations

import pytest

from mockbroker.core.security.authorizer import STANDARD_AUTHORIZER
from mockbroker.core.share import acknowledgement as texts
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.share_acknowledge import ShareAcknowledgeResponse
from tests.support.requests import batch_of, done
from tests.support.share import ShareNode, rows_of, summary


@pytest.fixture
def node() -> ShareNode:
    node = ShareNode()
    node.topic("t", 2)
    node.produced(batch_of(b"a", b"b"))
    done(node.share_fetch(0, node.wanted(0, 1)))
    return node


def acknowledged(node: ShareNode, epoch: int, *topics, **more) -> ShareAcknowledgeResponse:
    response = done(node.share_acknowledge(epoch, *topics, **more))
    assert isinstance(response, ShareAcknowledgeResponse)
    return response


def error_of(response: ShareAcknowledgeResponse) -> tuple[int, str | None]:
    (row,) = rows_of(response).values()
    return row.error_code, row.error_message


def test_records_are_acknowledged_once_they_are_written(node):
    node.persister.holds = True
    parked = node.share_acknowledge(1, node.acks((0, 0, [1]), (1, 1, [2])))
    assert not parked.done
    node.persister.answer()
    response = done(parked)
    assert error_of(response) == (ErrorCode.NONE, None)
    assert response.acquisition_lock_timeout_ms == 30_000
    assert summary(node.share()) == "0:acknowledged/1 1:available/1"


def test_the_last_acknowledgement_ends_the_session_and_releases_the_rest(node):
    acknowledged(node, -1, node.acks((0, 0, [1])))
    assert summary(node.share()) == "0:acknowledged/1 1:available/1"
    response = acknowledged(node, 1, node.acks((1, 1, [1])))
    assert response.error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


@pytest.mark.parametrize("epoch", [0, 2, -7])
def test_an_invalid_epoch_is_refused(node, epoch):
    response = acknowledged(node, epoch, node.acks((0, 0, [1])))
    assert response.error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert summary(node.share()) == "0-1:acquired/1"


def test_a_request_without_a_session_group_or_member_is_refused(node):
    errors = [
        acknowledged(node, 1, member="m9").error_code,
        acknowledged(node, 1, group=None).error_code,
        acknowledged(node, 1, member="").error_code,
    ]
    assert errors == [
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]


@pytest.mark.parametrize(
    ("batch", "error", "text"),
    [
        ((1, 0, [1]), ErrorCode.INVALID_REQUEST, None),
        ((0, 1, [7]), ErrorCode.INVALID_REQUEST, None),
        ((0, 1, []), ErrorCode.INVALID_REQUEST, None),
        ((0, 9, [1]), ErrorCode.INVALID_REQUEST, texts.LAST_PAST),
        ((5, 9, [1]), ErrorCode.INVALID_REQUEST, texts.FIRST_PAST),
    ],
)
def test_ranges_that_make_no_sense_are_refused(node, batch, error, text):
    assert error_of(acknowledged(node, 1, node.acks(batch))) == (error, text)


def test_a_renewal_needs_its_flag(node):
    renewal = node.acks((0, 1, [4]))
    assert error_of(acknowledged(node, 1, renewal)) == (ErrorCode.INVALID_REQUEST, None)
    assert error_of(acknowledged(node, 2, renewal, renew=True)) == (ErrorCode.NONE, None)


def test_unknown_topics_and_partitions_have_their_errors(node):
    batch = (0, 0, [1])
    response = acknowledged(node, 1, node.acks(batch, topic="missing"), node.acks(batch, index=9))
    found = {row.error_code for topic in response.responses for row in topic.partitions}
    assert found == {ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_with_an_authorizer_an_unknown_topic_fails_the_request_and_nothing_is_applied():
    node = ShareNode(
        configs={
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "allow.everyone.if.no.acl.found": "true",
        }
    )
    node.topic("t")
    node.produced(batch_of(b"a"))
    done(node.share_fetch(0, node.wanted()))
    both = node.acks((0, 0, [1])), node.acks((0, 0, [1]), topic="missing")
    response = acknowledged(node, 1, *both)
    assert (response.error_code, response.responses) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
    assert summary(node.share()) == "0:acquired/1"
    assert error_of(acknowledged(node, 2, both[0])) == (ErrorCode.NONE, None)


def test_a_partition_that_the_group_never_fetched_is_unknown():
    node = ShareNode()
    node.topic("t", 2)
    done(node.share_fetch(0, node.wanted(0)))
    error, message = error_of(acknowledged(node, 1, node.acks((0, 0, [1]), index=1)))
    assert error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert message == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message


def test_no_acknowledgements_of_a_partition_are_no_error(node):
    """Its row is there only if another partition has some."""
    response = acknowledged(node, 1, node.acks())
    assert response.responses == []
    both = acknowledged(node, 2, node.acks((0, 0, [1])), node.acks(index=1))
    rows = [row.error_code for topic in both.responses for row in topic.partitions]
    assert rows == [ErrorCode.NONE, ErrorCode.NONE]


def test_a_fenced_write_ends_the_share_partition(node):
    node.persister.error = ErrorCode.FENCED_STATE_EPOCH
    share = node.share()
    response = acknowledged(node, 1, node.acks((0, 0, [1])))
    (row,) = rows_of(response).values()
    assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert row.current_leader.leader_id == 1
    assert not share.is_active
    assert node.manager.get("g", node.topic_id("t"), 0) is None
