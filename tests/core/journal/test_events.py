"""Each field of an event has a meaning, and an event has a line."""

import pytest

from mockbroker.core.journal.events import JournalEvent, field_meanings, one_line


def test_each_field_has_a_meaning_in_its_order():
    meanings = field_meanings()
    assert tuple(meanings) == JournalEvent.__struct_fields__
    assert all(meanings.values())


@pytest.mark.parametrize(
    ("resource", "fields", "words"),
    [
        (("topic", "orders"), {"topic": "orders"}, "topic=orders"),
        (("group", "billing"), {"group": "billing"}, "group=billing"),
        (("broker", "2"), {"broker": 2}, "broker=2"),
        (("broker", ""), {}, "broker=all"),
        (("client_metrics", "cpu"), {}, "client_metrics=cpu"),
    ],
)
def test_the_line_of_changed_configs_has_the_resource_and_the_new_values(resource, fields, words):
    configs = [
        {"name": "a.ms", "former": None, "value": "60000"},
        {"name": "b.bytes", "former": "1", "value": None},
    ]
    message = {"resource_type": resource[0], "resource_name": resource[1], "configs": configs}
    event = JournalEvent(seq=7, kind="configs", virtual_ms=0, real_ns=0, message=message, **fields)
    assert one_line(event) == f"#7 configs {words} a.ms=60000 b.bytes=default"


def test_a_line_needs_no_message():
    event = JournalEvent(seq=7, kind="configs", virtual_ms=0, real_ns=0, topic="orders")
    assert one_line(event) == "#7 configs topic=orders"
