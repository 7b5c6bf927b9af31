"""Rules on share groups: their conditions, the part they select, and impossible rules."""

from __future__ import annotations

import pytest

from mockbroker.core.faults.engine import engine_of
from mockbroker.core.faults.facts import Facts
from mockbroker.core.faults.rules import parse_plan, parse_rule
from mockbroker.core.validation import ValidationError
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.share_fetch import ShareFetchRequest
from tests.support.requests import batch_of
from tests.support.share import GROUP, MEMBER, ShareNode

ACCEPT, RELEASE, REJECT = 1, 2, 3
LOOK = {"observe": {}}


@pytest.fixture
def node() -> ShareNode:
    node = ShareNode()
    node.topic("t", 2)
    return node


def fired(node: ShareNode, request: ShareFetchRequest, **rule: object):
    """What fires for a ShareFetch, of one rule."""
    engine = engine_of(node.cluster)
    engine.clear()
    engine.add(parse_plan({"do": LOOK, **rule}, "f"))
    return engine.evaluate(node.share_ctx(ApiKey.SHARE_FETCH, 2), request)


def asking(node: ShareNode, epoch: int, *topics, member: str = MEMBER) -> ShareFetchRequest:
    return ShareFetchRequest(GROUP, member, epoch, topics=list(topics))


def test_an_acknowledge_type_selects_the_partitions_that_have_it(node):
    topics = [node.wanted(0, acks=[(0, 1, [ACCEPT, REJECT])]), node.wanted(1, acks=[(0, 0, [2])])]
    request = asking(node, 3, *topics)
    for wanted, partitions in (("reject", [0]), ("release", [1]), (["accept", "release"], [0, 1])):
        found = fired(node, request, match={"acknowledge_type": wanted})
        assert found is not None
        (decision,) = found.decisions
        assert [each.partition for each in decision.selection.targets] == partitions
        assert decision.selection.of_acknowledgements
    assert fired(node, request, match={"acknowledge_type": "renew"}) is None
    match = {"acknowledge_type": "reject", "partition": 1}
    assert fired(node, request, match=match) is None


def test_a_partition_that_only_the_share_session_names_matches(node):
    node.share_fetch(0, node.wanted(0, 1), max_wait_ms=0)
    request = asking(node, 1)
    assert fired(node, request, match={"topic": "t", "partition": 1}) is not None
    assert fired(node, request, match={"topic": "other"}) is None
    forgetting = asking(node, 1)
    forgetting.forgotten_topics_data = [node.forgotten(1)]
    ctx = node.share_ctx(ApiKey.SHARE_FETCH, 2)
    named = [target.partition for target in Facts(ctx, forgetting).targets]
    assert sorted(named) == [0, 1]
    assert fired(node, asking(node, 1, member="m2"), match={"topic": "t"}) is None


def test_a_delivery_count_is_decided_by_the_answer(node):
    node.produced(batch_of(b"a"))
    response = node.share_fetch(0, node.wanted(0))
    engine = engine_of(node.cluster)
    for wanted, hits in ((1, 1), ([2, 3], 0), ({"min": 2}, 0), ({"max": 1}, 1)):
        found = fired(node, asking(node, 0, node.wanted(0)), match={"delivery_count": wanted})
        assert found is not None
        assert (found.decisions, len(found.awaiting)) == ((), 1)
        decisions = engine.evaluate_answer(found, response)
        assert len(decisions) == hits
        assert engine.rule("f").hits == hits
        assert all(each.selection.targets[0].partition == 0 for each in decisions)
    assert engine.evaluate_answer(found, None) == ()
    assert engine.explain("f").failed == {"delivery_count": 1}


@pytest.mark.parametrize(
    ("rule", "field", "reason"),
    [
        (
            {"match": {"api": "Produce", "acknowledge_type": "gap"}, "do": LOOK},
            "match.acknowledge_type",
            "this is for ShareAcknowledge and ShareFetch",
        ),
        (
            {"match": {"api": "ShareAcknowledge", "delivery_count": 2}, "do": LOOK},
            "match.delivery_count",
            "this is for ShareFetch",
        ),
        (
            {"match": {"delivery_count": 2}, "do": {"error": "UNKNOWN_SERVER_ERROR"}},
            "do.error",
            "the request is applied before",
        ),
        ({"match": {"delivery_count": 2}, "do": {"delay": 5}}, "do.delay.phase", "use after"),
        (
            {
                "match": {"api": "ShareFetch", "delivery_count": 2},
                "do": {"rewrite": {"request": {"max_records": 1}}},
            },
            "do.rewrite.request",
            "rewrite that",
        ),
        (
            {"match": {"from_broker": 1, "acknowledge_type": "gap"}, "do": LOOK},
            "match.acknowledge_type",
            "requests between brokers have no such field",
        ),
    ],
)
def test_impossible_rules_are_refused(rule, field, reason):
    with pytest.raises(ValidationError, match=reason) as refused:
        parse_rule(rule, "", "f")
    assert refused.value.path == field
