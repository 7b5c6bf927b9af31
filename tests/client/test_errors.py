from __future__ import annotations

import pytest

from mockbroker.client import BrokerError, ConnectionClosedError
from mockbroker.client.errors import check
from mockbroker_protocol import ErrorCode


def test_an_error_code_is_told_with_its_name_and_meaning():
    error = BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "produce to t-0")
    assert str(error).startswith("produce to t-0: ")
    assert str(error).endswith("(NOT_LEADER_OR_FOLLOWER)")
    assert (error.code, error.retriable) == (6, True)


def test_the_broker_s_own_words_come_first():
    error = BrokerError(ErrorCode.INVALID_CONFIG, "create topic t", "no such config")
    assert str(error) == "create topic t: no such config (INVALID_CONFIG)"
    assert not error.retriable


def test_codes_to_come_are_told_by_number():
    error = BrokerError(12345, "something")
    assert "(error 12345)" in str(error)
    assert not error.retriable


def test_check_passes_success_and_raises_the_rest():
    check(0, "nothing")
    with pytest.raises(BrokerError, match="OFFSET_OUT_OF_RANGE"):
        check(1, "fetch")


def test_a_close_says_whose_it_was():
    assert str(ConnectionClosedError("h:1", 0)) == "h:1 closed the connection"
