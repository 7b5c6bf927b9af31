"""Actions on brokers: what is refused, and why."""

from __future__ import annotations

import pytest

from mockbroker.core.errors import ActionError
from mockbroker.core.validation import ValidationError
from tests.support.replicas import Replicas


@pytest.fixture
def node() -> Replicas:
    """Broker 2 is stopped, broker 3 paused."""
    node = Replicas()
    node.cluster.stop_broker(2)
    node.cluster.pause_broker(3)
    return node


@pytest.mark.parametrize(
    ("action", "arguments", "why"),
    [
        ("stop_broker", (9,), "no broker 9; there are: 1, 2, 3"),
        ("stop_broker", (2,), "2 is stopped already"),
        ("start_broker", (1,), "1 is running, not stopped"),
        ("start_broker", (3,), "3 is paused, not stopped"),
        ("pause_broker", (2,), "2 is stopped, not running"),
        ("pause_broker", (3,), "3 is paused, not running"),
        ("resume_broker", (1,), "1 is running, not paused"),
        ("add_broker", (1,), "a broker 1 already"),
        ("add_broker", (-1,), "-1 cannot be"),
        ("remove_broker", (9,), "no broker 9"),
        ("set_rack", (9, "r"), "no broker 9"),
        ("fail_log_dir", (2,), "2 is stopped"),
        ("fail_log_dir", (1, "/no"), "no live log directory '/no'"),
    ],
)
def test_what_is_refused_says_why_and_changes_nothing(node, action, arguments, why):
    before = node.leadership(), [broker.state for broker in node.cluster.brokers.values()]
    node.events.clear()
    with pytest.raises(ActionError, match=why):
        getattr(node.cluster, action)(*arguments)
    after = node.leadership(), [broker.state for broker in node.cluster.brokers.values()]
    assert (after, node.events) == (before, [])


@pytest.mark.parametrize(
    ("action", "arguments", "why"),
    [
        ("stop_broker", (1, "gently"), "stop_broker.how: 'gently' is not allowed here"),
        ("stop_broker", (1, "unclean", -1), "stop_broker.fence_after: .* negative: -1"),
        ("stop_broker", (1, "power_loss", 5), "stop_broker: a broker that loses its power"),
        ("delay_network", (1, None, -5), "delay_network.by: .* negative: -5"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(node, action, arguments, why):
    with pytest.raises(ValidationError, match=why):
        getattr(node.cluster, action)(*arguments)


def test_links_are_slowed_down_and_healed():
    node = Replicas()
    node.cluster.delay_network(1, 2, by_ms=30)
    node.advance(1000)
    answer = node.send("a")
    node.advance(59)
    assert not answer.done
    node.advance(1)
    assert answer.done
    node.cluster.heal_network(1, 2)
    node.advance(1000)
    assert (node.with_own_replica(), node.sent("b").error_code) == ([], 0)
