"""Every event in every state of a broker's process: a transition or a refusal."""

from __future__ import annotations

import pytest

from mockbroker.core.brokers.broker import BrokerSpec
from mockbroker.core.brokers.broker_life import (
    PAUSED,
    REFUSALS,
    REMOVED,
    RUNNING,
    STATES,
    STOPPED,
    TRANSITIONS,
    ProcessEvent,
    after,
)
from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ActionError

TWO_DIRS = {"log.dirs": "/one,/two"}
ACTIONS = {
    ProcessEvent.START: "start_broker",
    ProcessEvent.STOP: "stop_broker",
    ProcessEvent.PAUSE: "pause_broker",
    ProcessEvent.RESUME: "resume_broker",
    ProcessEvent.FAIL_LOG_DIR: "fail_log_dir",
    ProcessEvent.REMOVE: "remove_broker",
}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(
        brokers=[BrokerSpec(1), BrokerSpec(2)], configs=TWO_DIRS, seed=1, now_ms=lambda: 0
    )


def bring(cluster: Cluster, state: str) -> None:
    if state == PAUSED:
        cluster.pause_broker(2)
    elif state == STOPPED:
        cluster.stop_broker(2)


@pytest.mark.parametrize("state", STATES)
def test_each_event_has_a_transition_or_a_refusal_and_never_both(state: str) -> None:
    assert TRANSITIONS[state].keys() | REFUSALS[state].keys() == set(ProcessEvent)
    assert not TRANSITIONS[state].keys() & REFUSALS[state].keys()


@pytest.mark.parametrize("event", ProcessEvent, ids=lambda event: event.name)
@pytest.mark.parametrize("state", [RUNNING, PAUSED, STOPPED])
def test_actions_follow_the_table(cluster: Cluster, state: str, event: ProcessEvent) -> None:
    bring(cluster, state)
    broker = cluster.brokers[2]
    expected = TRANSITIONS[state].get(event)
    if expected is None:
        with pytest.raises(ActionError, match="broker 2 " + REFUSALS[state][event].split("{")[0]):
            getattr(cluster, ACTIONS[event])(2)
        expected = state
    else:
        getattr(cluster, ACTIONS[event])(2)
    assert broker.state == expected


@pytest.mark.parametrize("event", ProcessEvent, ids=lambda event: event.name)
def test_a_removed_broker_refuses_every_event(cluster: Cluster, event: ProcessEvent) -> None:
    cluster.remove_broker(2)
    with pytest.raises(ActionError, match="there is no broker 2"):
        getattr(cluster, ACTIONS[event])(2)
    with pytest.raises(ActionError, match="broker 2 was removed"):
        after(2, REMOVED, event)
