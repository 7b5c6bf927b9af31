"""Unauthenticated clients are refused after the delay."""

from __future__ import annotations

from mockbroker.handlers.authentication import delayed_failure
from tests.support.ask import nodes


def test_a_refusal_waits_for_its_delay():
    node = nodes(1, connection_failed_authentication_delay_ms="250")
    parked = delayed_failure(node.cluster, node.now_ms, "no")
    node.advance(249)
    assert not parked.done
    node.advance(1)
    assert parked.response == "no"


def test_without_a_delay_a_refusal_is_there_at_once():
    node = nodes(1, connection_failed_authentication_delay_ms="0")
    assert delayed_failure(node.cluster, node.now_ms, "no").done
