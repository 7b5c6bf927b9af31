"""Which clients are asked for which metrics; a real broker gives the same ids in another test."""

from __future__ import annotations

import pytest

from mockbroker.core.telemetry.subscriptions import (
    DEFAULT_INTERVAL_MS,
    RequestedMetrics,
    requested_metrics,
    subscription_id,
)

CLIENT = {
    "client_id": "shop-1",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.3.1",
}


def test_without_subscriptions_nothing_is_asked_for():
    assert requested_metrics({}, CLIENT) == RequestedMetrics((), DEFAULT_INTERVAL_MS)


@pytest.mark.parametrize(
    ("match", "found"),
    [
        ("", True),
        ("client_id=shop-.*", True),
        ("client_id=shop", False),
        ("client_id=shop-.*,client_software_version=4\\..*", True),
        ("client_id=shop-.*, client_software_version = 3.* ", False),
        ("client_source_port=.*", False),
    ],
)
def test_all_selectors_match_the_whole_of_their_attribute(match, found):
    requested = requested_metrics({"s": {"metrics": "a", "match": match}}, CLIENT)
    assert requested.metrics == (("a",) if found else ())


@pytest.mark.timeout(10)
def test_a_selector_that_makes_backtracking_explode_is_answered_at_once():
    configs = {"s": {"metrics": "a", "match": "client_id=(a+)+z"}}
    assert requested_metrics(configs, {"client_id": "a" * 3000}).metrics == ()


def test_subscriptions_are_taken_together_at_the_shortest_interval():
    requested = requested_metrics(
        {
            "one": {"metrics": "a,b", "interval.ms": "60000"},
            "two": {"metrics": "b,c", "interval.ms": "1000"},
            "three": {"metrics": "d", "interval.ms": "100", "match": "client_id=other"},
            "four": {"metrics": "e"},
        },
        CLIENT,
    )
    assert (sorted(requested.metrics), requested.interval_ms) == (["a", "b", "c", "e"], 1000)


def test_everything_hides_what_is_asked_for_by_name():
    requested = requested_metrics({"one": {"metrics": "a"}, "two": {"metrics": "*"}}, CLIENT)
    assert requested.metrics == ("*",)


def test_the_id_tells_clients_and_questions_apart():
    ids = {
        subscription_id(RequestedMetrics(metrics, interval_ms), bytes([*range(15), client]))
        for metrics in ((), ("a",), ("a", "b"))
        for interval_ms in (100, 200)
        for client in (1, 2)
    }
    assert len(ids) == 12
    assert all(-(2**31) <= each < 2**31 for each in ids)
