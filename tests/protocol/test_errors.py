"""The error codes and API keys: complete."""

from __future__ import annotations

from mockbroker_protocol import ApiKey, ErrorCode


def test_codes_are_those_of_kafka_4_3() -> None:
    """From -1 to 133 without a gap."""
    assert [code.value for code in ErrorCode] == list(range(-1, 134))
    assert ErrorCode(6) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION == 3


def test_retriable_codes_are_those_of_kafkas_retriable_exceptions() -> None:
    """Read from `Errors` of kafka-clients 4.3.1."""
    retriable = {int(code) for code in ErrorCode if code.retriable}
    assert retriable == {
        *(2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84),
        *(88, 89, 100, 103, 106, 122, 123, 133),
    }


def test_keys_run_from_0_to_92() -> None:
    """Even those of the ZooKeeper era have names."""
    assert [key.value for key in ApiKey] == list(range(93))
    assert ApiKey.OFFSET_FOR_LEADER_EPOCH == 23
