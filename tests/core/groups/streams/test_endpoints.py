"""The partitions of each process, for interactive queries."""

from __future__ import annotations

from mockbroker.core.groups.streams.members import Endpoint
from mockbroker_protocol import ErrorCode
from tests.support.streams_playbook import StreamsPlay, reading

HERE, THERE = Endpoint("here", 1), Endpoint("there", 2)


def test_a_process_reads_the_partitions_of_its_active_tasks() -> None:
    play = StreamsPlay(t=3, u=2)
    answer = play.join("a", reading("t", "u"), endpoint=HERE, endpoint_epoch=-1)
    assert answer.endpoints is not None
    [only] = answer.endpoints
    assert (only.endpoint, only.active, only.standby) == (
        HERE,
        (("t", (0, 1, 2)), ("u", (0, 1))),
        (),
    )


def test_a_member_without_an_endpoint_is_left_out() -> None:
    play = StreamsPlay(t=2)
    play.join("a", reading("t"))
    answer = play.join("b", reading("t"), endpoint=THERE, endpoint_epoch=-1)
    assert answer.endpoints is not None
    assert [each.endpoint for each in answer.endpoints] == [THERE]


def test_an_endpoint_before_the_tasks_are_known_is_an_error_of_the_server() -> None:
    """As in Kafka 4.3, whose coordinator runs into an exception then."""
    play = StreamsPlay()
    answer = play.join("a", reading("t"), endpoint=HERE)
    assert answer.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not play.stored
