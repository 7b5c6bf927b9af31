"""Rules as data: refusals with their messages, and the data of a parsed plan."""

from __future__ import annotations

import pytest

from mockbroker.core.faults.effects.table import EFFECTS
from mockbroker.core.faults.rules import Match, RuleData, TimelineEntryData, When, parse_plan
from mockbroker.core.validation import ValidationError, duration_ms, struct_fields

PRODUCE = {"api": "Produce"}
LOSE = {"drop_reply": {}}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            {"rules": [{"match": {"topik": "x"}, "do": LOSE}]},
            "rules[0].match.topik: unknown field; did you mean 'topic'?",
        ),
        (
            {"rules": [{"do": LOSE}, {"do": {"drop_reply": {"then": "rest"}}}]},
            "rules[1].do.drop_reply.then: 'rest' is not allowed here; did you mean 'reset'?",
        ),
        (
            {"match": {"api": "Produse"}, "do": LOSE},
            "match.api: unknown API 'Produse'; did you mean 'Produce'?",
        ),
        ({"match": {"api": 999}, "do": LOSE}, "match.api: there is no API with key 999"),
        ({"do": {"eror": 1}}, "do.eror: unknown field; did you mean 'error'?"),
        (
            {"do": {"error": "NOT_LEADER"}},
            "do.error: unknown error code 'NOT_LEADER'; did you mean 'NOT_LEADER_OR_FOLLOWER'?",
        ),
        ({"do": {"error": {}}}, "do.error.code: this field is needed"),
        ({"do": {}}, "do: say what to do"),
        (
            {"do": {"duplicate_reply": 1_001}},
            "do.duplicate_reply.times: 1001 is outside 1..1000",
        ),
        (
            {"rules": [{"do": LOSE}] * 1001},
            "rules: a plan has at most 1,000 rules, not 1,001",
        ),
        ({"match": PRODUCE}, "match: unknown field; it belongs at rules[].match"),
        ({"do": LOSE, "times": 1}, "times: unknown field; it belongs at when.times"),
        (
            {"rules": [{"do": {"error": {"code": "NONE", "times": 1}}}]},
            "rules[0].do.error.times: unknown field; it belongs at rules[0].when.times",
        ),
        ({"do": {"error": "NONE", "then": 1}}, "do.then: unknown field; known are: "),
        (
            {"do": {"drop_reply": {}, "then": "reset"}},
            "do.then: unknown field; it belongs at do.drop_reply.then",
        ),
        ({"error": "NONE"}, "error: unknown field; it belongs at rules[].do.error"),
        ({"do": {"delay": "5 parsecs"}}, "'5 parsecs' is not a duration; write 250 (ms) or \"5s\""),
        ({"do": {"delay": -1}}, "a duration cannot be negative: -1"),
        ({"do": {"delay": {}}}, "do.delay: give one of by, uniform and lognormal"),
        ({"do": {"slow": {}}}, "do.slow: give one of bytes_per_s and pause"),
        ({"do": LOSE, "when": {"times": -1}}, "when.times: -1 is outside 0..2147483647"),
        ({"do": LOSE, "when": {"times": "1"}}, "when.times: expected an integer, not '1'"),
        ({"do": LOSE, "when": {"times": True}}, "when.times: expected an integer, not True"),
        ({"do": LOSE, "when": {"probability": 2}}, "when.probability: 2.0 is outside 0.0..1.0"),
        ({"do": LOSE, "when": {"nth": 1, "every": 2}}, "when.nth: give nth or every, not both"),
        ({"do": LOSE, "when": {"from": 5, "until": 5}}, "when.until: `until` must be after `from`"),
        (
            {"do": LOSE, "when": {"after_offset": 1}},
            "when.after_offset: the match must name a topic",
        ),
        (
            {"match": {"topic": "/(/"}, "do": LOSE},
            "match.topic: /(/ is no regular expression",
        ),
        ({"match": {"topic_id": "x"}, "do": LOSE}, "match.topic_id: "),
        ({"match": {"api_version": "x"}, "do": LOSE}, "match.api_version: 'x' is no range"),
        (
            {"match": {**PRODUCE, "where": {"topic_data[].nam": 1}}, "do": LOSE},
            "match.where.topic_data[].nam: no such field; did you mean 'topic_data[].name'?",
        ),
        (
            {"match": {"where": {"acks": {"below": 1}}}, "do": LOSE},
            'match.where.acks: a range has "min" and "max", not [\'below\']',
        ),
        (
            {"match": {"api": "Fetch"}, "do": {"record_errors": [0]}},
            "match.api: record_errors is for Produce",
        ),
        (
            {"match": {"topic": "t"}, "do": {"refuse_connection": {}}},
            "match.topic: refuse_connection happens before the first request; a connection has",
        ),
        (
            {"do": {"refuse_connection": {}, "delay": 5}},
            "do.delay: this cannot be combined with refuse_connection",
        ),
        ({"do": {"rewrite": {"answer": {"x": 1}}}}, "do.rewrite: the match must name an api"),
        (
            {
                "match": {"api": "ListOffsets"},
                "do": {"rewrite": {"answer": {"topics[].partitions[].offset": "x"}}},
            },
            "do.rewrite.answer.topics[].partitions[].offset: 'x' does not fit the field",
        ),
        (
            {
                "match": {"api": "ListOffsets"},
                "do": {"rewrite": {"answer": {"topics[].partitions[].error_code": 32768}}},
            },
            "error_code: 32768 is outside -32768..32767",
        ),
        (
            {
                "match": {"api": "Metadata"},
                "do": {"rewrite": {"answer": {"brokers[].host": "é" * 20_000}}},
            },
            "brokers[].host: a text has at most 32767 bytes",
        ),
        (
            {
                "match": {"api": "Metadata"},
                "do": {"rewrite": {"answer": {"topics[].partitions[].isr_nodes": [1, "x"]}}},
            },
            "isr_nodes: 'x' does not fit the field",
        ),
        ({"do": {"throttle": 2**31}}, "do.throttle: by: 2147483648 is outside"),
        ({"do": {"error": {"code": 1, "message": "é" * 20_000}}}, "message: a text has at most"),
        (
            {"match": PRODUCE, "do": {"record_errors": [2**31]}},
            "do.record_errors: records: 2147483648 is outside",
        ),
        ({"do": {"falsify_metadata": {"leader": 2**31}}}, "leader: 2147483648 is outside"),
        (
            {"timeline": [{"at": "5s", "do": {"drop_reply": {}}}]},
            "timeline[0].do.drop_reply: only actions on the cluster can be done here",
        ),
        (
            {"timeline": [{"after": "x", "do": {"stop_broker": 1}}]},
            "timeline[0].after: no rule 'x' in this plan",
        ),
        (
            {"timeline": [{"do": {"stop_broker": {"node": 1, "how": "unclen"}}}]},
            "timeline[0].do.stop_broker.how: 'unclen' is not allowed here; did you mean",
        ),
        ({"rules": []}, "rules: a plan has rules or a timeline"),
        ({"rules": [{"do": LOSE, "name": "a b"}]}, "rules[0].name: 'a b' is no name"),
        (
            {"rules": [{"do": LOSE, "name": "a"}, {"do": LOSE, "name": "a"}]},
            "rules[1].name: there are two rules 'a'",
        ),
        ({"rules": {}}, "rules: expected a list, not {}"),
        ("x", "expected an object, not 'x'"),
        (
            {"do": {"falsify_metadata": {}}},
            "do.falsify_metadata: say what is false",
        ),
        ({"do": {"falsify_api_versions": {"as": "1.0"}}}, "'1.0' is not a release from 2.8 to 4.3"),
        (
            {"do": {"falsify_api_versions": {"hide": ["Fech"]}}},
            "do.falsify_api_versions.hide[0]: unknown API 'Fech'; did you mean 'Fetch'?",
        ),
        (
            {"do": {"abort_transaction": {"topic": "t"}}},
            "do.abort_transaction: give transactional_id, or producer_id, topic and partition",
        ),
    ],
)
def test_an_invalid_rule_is_refused_with_the_path_of_the_field(data: object, said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        parse_plan(data, "plan")
    assert said in str(raised.value)


def test_a_plan_becomes_data_again_without_its_defaults_and_in_milliseconds() -> None:
    data = {
        "name": "story",
        "seed": 7,
        "rules": [
            {
                "name": "lose-one-ack",
                "match": {"api": "Produce", "topic": "orders", "partition": 0},
                "when": {"skip": 2, "times": 1, "from": "2s", "until": "1.5m"},
                "do": {"drop_reply": "reset", "delay": "250ms"},
                "priority": 3,
                "tags": ["ack"],
            }
        ],
        "timeline": [
            {"at": "5s", "do": {"stop_broker": {"node": 2, "how": "unclean"}}},
            {"after": "lose-one-ack", "at": 10, "do": {"start_broker": 2}},
        ],
    }
    plan = parse_plan(data, "default")
    out = plan.to_data()
    assert out["rules"] == [
        {
            "name": "lose-one-ack",
            "match": {"api": "Produce", "topic": "orders", "partition": 0},
            "when": {"skip": 2, "times": 1, "from": 2000, "until": 90_000},
            "do": {"drop_reply": {"then": "reset"}, "delay": {"by": 250}},
            "priority": 3,
            "tags": ["ack"],
        }
    ]
    assert out["timeline"] == [
        {"at": 5000, "do": {"stop_broker": {"node": 2, "how": "unclean"}}},
        {"at": 10, "after": "lose-one-ack", "do": {"start_broker": {"node": 2}}},
    ]
    assert parse_plan(out, "default") == plan


def test_rules_without_names_are_named_after_their_plan() -> None:
    assert [r.name for r in parse_plan({"do": LOSE}, "f").rules] == ["f"]
    plan = parse_plan({"name": "set", "rules": [{"do": LOSE}, {"do": LOSE}]}, "f")
    assert [rule.name for rule in plan.rules] == ["set-1", "set-2"]


@pytest.mark.parametrize(
    ("text", "ms"),
    [(5, 5), ("250ms", 250), ("5s", 5000), ("1.5h", 5_400_000), (" 7 d ", 604_800_000)],
)
def test_durations(text: int | str, ms: int) -> None:
    assert duration_ms(text, "x") == ms


def test_data_that_nests_without_end_is_refused() -> None:
    deep: object = 1
    for _ in range(50):
        deep = {"client_id": deep}
    with pytest.raises(ValidationError):
        parse_plan({"match": deep, "do": LOSE}, "f")


SECTIONS = {
    "": struct_fields(RuleData),
    "match": struct_fields(Match),
    "when": struct_fields(When),
    "do": EFFECTS,
    "timeline[]": struct_fields(TimelineEntryData),
}


@pytest.mark.parametrize("wrong", SECTIONS)
@pytest.mark.parametrize("right", SECTIONS)
def test_the_error_for_a_field_in_a_wrong_section_names_the_right_one(
    wrong: str, right: str
) -> None:
    """For all fields of rules, in a rule of a plan and in a timeline."""
    for field in set(SECTIONS[right]) - set(SECTIONS[wrong]):
        place = f"{right}.{field}" if right else field
        if wrong == "timeline[]":
            entry = {"do": {"stop_broker": 1}, field: {}}
            data = {"rules": [{"do": LOSE}], "timeline": [entry]}
            path, place = f"timeline[0].{field}", f"rules[].{place}"
        else:
            rule: dict[str, dict[str, object]] = {"do": dict(LOSE)}
            (rule if not wrong else rule.setdefault(wrong, {}))[field] = {}
            data = {"rules": [rule]}
            path = f"rules[0].{wrong}.{field}" if wrong else f"rules[0].{field}"
            place = place if right == "timeline[]" else f"rules[0].{place}"
        with pytest.raises(ValidationError) as refused:
            parse_plan(data, "p")
        reason, _, places = refused.value.reason.partition("; it belongs at ")
        assert (refused.value.path, reason) == (path, "unknown field")
        assert place in places.split(" or ")
