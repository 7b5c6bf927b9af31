"""The vocabulary of actions and effects, and actions that cannot be carried out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mockbroker.core.actions import ACTIONS, find_action, parse_action
from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ActionError, ApiError
from mockbroker.core.faults.effects.table import EFFECTS
from mockbroker.core.faults.engine import engine_of
from mockbroker.core.journal.entries import FactEntry
from mockbroker.core.journal.journal import Journal
from mockbroker.core.validation import ValidationError

EFFECT_NAMES = """
error record_errors error_after drop_request drop_reply close delay hold throttle rewrite slow
truncate_reply corrupt_reply corrupt_batch duplicate_reply reorder_replies duplicate_records
hide_records refuse_connection stall_handshake fail_reauthentication expire_credential
falsify_api_versions falsify_metadata observe
"""
ACTION_NAMES = """
stop_broker start_broker pause_broker resume_broker add_broker remove_broker cut_network
heal_network move_leader drop_leader shuffle_leaders lag_follower shrink_isr hold_high_watermark
set_high_watermark elect_unclean delete_records run_retention run_compaction recreate_topic
fail_log_dir move_coordinator unload_coordinator rebalance_group expire_member kick_member
fence_instance assign_group fence_producer expire_transaction abort_transaction hang_transaction
hold_last_stable_offset delay_network set_rack set_clock revoke_acl set_quota track
alter_configs create_internal_topics
expire_acquisition_locks release_records hand_out_twice archive_records set_delivery_count
move_share_coordinator unload_share_coordinator
report_stale_topology lose_internal_topic assign_tasks shut_down_application
"""


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(now_ms=lambda: 0, seed=1)
    made.create_topic("t", 2, 3)
    return made


def do(cluster: Cluster, name: str, arguments: object) -> object:
    return cluster.perform(find_action(name), parse_action(name, arguments))


def test_the_words_are_those_that_rules_are_promised() -> None:
    assert set(EFFECTS) == set(EFFECT_NAMES.split())
    assert set(ACTIONS) == set(ACTION_NAMES.split())


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("stop_broker", 9, "there is no broker 9"),
        ("start_broker", 1, "broker 1 is running, not stopped"),
        ("resume_broker", 1, "broker 1 is running, not paused"),
        ("add_broker", 1, "there is a broker 1 already"),
        ("cut_network", {"nodes": 1, "to": [8]}, "there is no broker 8"),
        ("cut_network", {"nodes": 9, "clients": {"client_id": "a"}}, "there is no broker 9"),
        ("move_leader", {"topic": "t", "partition": 5, "node": 1}, "partitions 0 to 1, not 5"),
        ("lag_follower", {"topic": "t", "partition": 0, "node": 9}, "is not a replica of t-0"),
        ("set_high_watermark", {"topic": "t", "partition": 0, "offset": 1}, "not within the log"),
        (
            "delete_records",
            {"topic": "t", "before_offset": 3},
            "above the high watermark of t-0, which is 0",
        ),
        ("delete_records", "no", "there is no topic 'no'"),
        ("recreate_topic", "no", "there is no topic 'no'"),
        ("hold_last_stable_offset", "no", "there is no topic 'no'"),
        ("fail_log_dir", {"node": 1, "path": "/x"}, "has no live log directory '/x'"),
        ("move_coordinator", {"key": "g", "node": 1}, "'g' has no coordinator yet"),
        ("rebalance_group", "g", "group 'g' has no coordinator just now"),
        ("assign_group", {"group": "g", "assignments": {}}, "has no coordinator just now"),
        ("fence_instance", {"group": "g", "instance_id": "i"}, "has no coordinator just now"),
        ("fence_producer", "tx", "'tx' has no coordinator just now"),
        ("expire_transaction", "tx", "'tx' has no coordinator just now"),
        (
            "abort_transaction",
            {"producer_id": 1, "topic": "t", "partition": 0},
            "producer 1 has no open transaction in t-0",
        ),
        (
            "abort_transaction",
            {"producer_id": 1, "topic": "t", "partition": 7},
            "there is no partition t-7",
        ),
        ("set_clock", {"freeze": True}, "no clock that could be steered"),
        ("revoke_acl", {"principal": "User:a"}, "no ACL binding matches; there are: none"),
        (
            "revoke_acl",
            {"operation": "raed"},
            "operation: 'raed' is unknown; did you mean 'read'",
        ),
        ("set_quota", {"key": "producer_byte_rate"}, "give user, client_id or ip"),
    ],
)
def test_an_action_that_cannot_be_done_says_why(
    cluster: Cluster, name: str, arguments: object, said: str
) -> None:
    before = cluster.image.epoch
    with pytest.raises(ActionError) as raised:
        do(cluster, name, arguments)
    assert said in str(raised.value)
    assert cluster.image.epoch == before


def test_kafka_s_own_refusals_come_through(cluster: Cluster) -> None:
    with pytest.raises(ApiError):
        do(cluster, "run_retention", "no")
    with pytest.raises(ApiError):
        do(cluster, "set_quota", {"user": "a", "key": "nonsense", "value": 1})


def test_a_group_that_has_a_coordinator_and_no_members(cluster: Cluster) -> None:
    cluster.ensure_internal_topic("__consumer_offsets")
    for name, arguments in (
        ("rebalance_group", "g"),
        ("expire_member", {"group": "g"}),
        ("kick_member", {"group": "g"}),
    ):
        with pytest.raises(ActionError, match="there is no group 'g'"):
            do(cluster, name, arguments)


def test_clients_are_cut_off_by_a_rule_that_healing_takes_away(cluster: Cluster) -> None:
    do(cluster, "cut_network", {"nodes": [1, 2], "clients": {"client_id": "a*"}})
    do(cluster, "cut_network", {"nodes": 1, "clients": {"principal": "User:x"}})
    assert cluster.faults is not None
    assert set(cluster.faults.rules) == {"cut_network-1", "cut_network-2"}
    do(cluster, "heal_network", {})
    assert cluster.faults is None


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("stop_brokr", {}, "unknown action 'stop_brokr'; did you mean 'stop_broker'?"),
        ("move_leader", {"topic": "t", "partition": -1, "node": 1}, "move_leader.partition: -1"),
        ("cut_network", {"nodes": 1, "to": 2, "clients": {}}, "clients do not go with to"),
        ("set_clock", {}, "set_clock: give freeze or rate, or advance"),
        ("lag_follower", {"topic": "t", "node": 1, "by": "soon"}, "lag_follower.by: 'soon'"),
    ],
)
def test_wrong_arguments_are_refused_by_their_path(name: str, arguments: object, said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        parse_action(name, arguments)
    assert said in str(raised.value)


class _Clock:
    """Notes how it is steered."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, float]] = []

    def set_rate(self, rate: float) -> None:
        self.steps.append(("rate", rate))

    def advance(self, milliseconds: int) -> None:
        self.steps.append(("advance", milliseconds))


def test_the_clock_is_steered_by_whoever_runs_it(cluster: Cluster) -> None:
    clock = cluster.runtime.clock_control = _Clock()
    steps: list[Callable[[], object]] = [
        lambda: do(cluster, "set_clock", {"freeze": True}),
        lambda: do(cluster, "set_clock", {"advance": "1h"}),
        lambda: do(cluster, "set_clock", {"freeze": False, "advance": 5}),
        lambda: do(cluster, "set_clock", {"rate": 2.5}),
    ]
    for step in steps:
        step()
    assert clock.steps == [
        ("rate", 0.0),
        ("advance", 3_600_000),
        ("rate", 1.0),
        ("advance", 5),
        ("rate", 2.5),
    ]


def test_every_way_to_act_leaves_the_same_entry_with_the_same_cause(cluster: Cluster) -> None:
    """A method of the cluster, an action by name, and a rule that fires."""
    journal = Journal(lambda: 0)
    cluster.keep_journal(journal)
    cluster.stop_broker(2, "unclean")
    do(cluster, "stop_broker", {"node": 3, "how": "unclean"})
    engine_of(cluster).act({"start_broker": parse_action("start_broker", 3)}, "my-rule")
    cluster.start_broker(2)
    _, entries = journal.since(0)
    facts = [each for each in entries if isinstance(each, FactEntry) and each.kind == "action"]
    shown = [(f["change"], f["rules"], f["arguments"]) for f in (each.facts for each in facts)]
    assert shown == [
        ("stop_broker", (), {"node": 2, "how": "unclean"}),
        ("stop_broker", (), {"node": 3, "how": "unclean"}),
        ("start_broker", ("my-rule",), {"node": 3}),
        ("start_broker", (), {"node": 2}),
    ]
