"""InitProducerId without a transactional id, and what is refused."""

from __future__ import annotations

import pytest

from mockbroker.handlers.init_producer_id import init_producer_id
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.init_producer_id import InitProducerIdRequest
from tests.support.requests import Node


def ask(node: Node, *, broker: int = 1, **fields):
    fields = {"transactional_id": None, "transaction_timeout_ms": 2147483647, **fields}
    return init_producer_id(node.ctx(5, broker=broker), InitProducerIdRequest(**fields))


@pytest.mark.covers("S116")
def test_each_request_gets_an_id_of_its_own_at_epoch_0_on_every_broker():
    node = Node(racks=(None, None))
    answers = [ask(node, broker=broker) for broker in (1, 2, 1, 2)]
    assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
    assert {answer.producer_epoch for answer in answers} == {0}
    assert len({answer.producer_id for answer in answers}) == 4
    assert min(answer.producer_id for answer in answers) >= 0


def test_an_id_that_the_producer_holds_already_is_not_looked_at():
    node = Node()
    first = ask(node)
    again = ask(node, producer_id=first.producer_id, producer_epoch=0)
    assert (again.error_code, again.producer_epoch) == (ErrorCode.NONE, 0)
    assert again.producer_id != first.producer_id


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": "x"}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_refusals(fields, error):
    answer = ask(Node(), **fields)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (error, -1, -1)
