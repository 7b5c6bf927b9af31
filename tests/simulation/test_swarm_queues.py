"""What plans have for share groups and streams groups, beside their members."""

from __future__ import annotations

import pytest

from mockbroker.core.share.records import ShareState
from mockbroker.core.share.state_batches import StateBatch
from mockbroker.simulation import Plan, generate, parse_plan, run
from mockbroker.simulation import plan as plans
from mockbroker.simulation.observe_shares import StoredState, first_undecided

PLANS = [generate(seed) for seed in range(150)]
SHARED = [plan for plan in PLANS if any(client.kind == "share" for client in plan.clients)]


def ruled(some: list[Plan]) -> set[str]:
    """The APIs of the rules of plans."""
    return {
        step.arguments["match"]["api"]
        for plan in some
        for step in plan.steps
        if step.do == plans.ADD_RULE
    }


def test_rules_meet_the_requests_of_these_groups_and_their_hops() -> None:
    assert {"ShareFetch", "ShareAcknowledge", "WriteShareGroupState"} <= ruled(SHARED)
    assert "StreamsGroupHeartbeat" in ruled(PLANS)
    others = [
        plan
        for plan in PLANS
        if not any(client.kind in ("share", "streams") for client in plan.clients)
    ]
    assert not any("Share" in api or "Streams" in api for api in ruled(others))


def test_a_share_group_has_a_last_member_for_all_its_topics() -> None:
    assert SHARED
    for plan in SHARED:
        last = plan.clients[-1]
        assert last.kind == "drainer"
        assert last.start_ms == plan.settings.duration_ms
        members = [client for client in plan.clients if client.kind == "share"]
        assert {name for member in members for name in member.topics} == set(last.topics)
    assert not any(
        client.kind == "drainer" for plan in PLANS if plan not in SHARED for client in plan.clients
    )


def test_the_last_member_gets_what_the_others_leave() -> None:
    """The only other member takes one round, and lets all locks expire."""
    plan = parse_plan(
        {
            "seed": 1,
            "settings": {
                "topics": [{"name": "orders", "partitions": 2}],
                "duration_ms": 2_000,
                "configs": {"share.coordinator.state.topic.replication.factor": "1"},
            },
            "clients": [
                {"kind": "producer", "name": "p", "topics": ["orders"], "operations": 30},
                {"kind": "share", "name": "s", "group": "sharers", "topics": ["orders"]},
                {"kind": "drainer", "name": "d", "group": "sharers", "topics": ["orders"]},
            ],
        }
    )
    outcome = run(plan)
    assert outcome.violations == []
    assert outcome.counts["share groups drained"] == 1


@pytest.mark.parametrize(
    ("start", "batches", "log_start", "undecided"),
    [
        (3, [], 0, 3),
        (3, [(3, 5, 2)], 0, 6),
        (3, [(3, 5, 2), (6, 6, 4), (8, 9, 2)], 0, 7),
        (3, [(3, 5, 2), (6, 6, 0)], 0, 6),
        (3, [(3, 5, 0), (6, 6, 2)], 6, 7),
        (3, [], 5, 5),
        (3, [(5, 6, 2)], 4, None),
    ],
    ids=["nothing", "first", "gap", "available", "deleted", "log-start", "gap-below-log-start"],
)
def test_the_first_record_that_is_neither_acknowledged_nor_archived_is_found(
    start: int, batches: list[tuple[int, int, int]], log_start: int, undecided: int | None
) -> None:
    """The last number of a batch is its delivery state: 0 Available, 2 Acknowledged, 4 Archived."""
    some = tuple(StateBatch(first, last, 1, state) for first, last, state in batches)
    merged = ShareState(0, start, 0).merged(ShareState(0, -1, 0, some))
    state = StoredState(0, 0, merged.start_offset, merged.batches)
    assert first_undecided(state, log_start) == undecided
