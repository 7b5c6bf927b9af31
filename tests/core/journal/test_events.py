"""Each field of an event has a meaning."""

from mockbroker.core.journal.events import JournalEvent, field_meanings


def test_each_field_has_a_meaning_in_its_order():
    meanings = field_meanings()
    assert tuple(meanings) == JournalEvent.__struct_fields__
    assert all(meanings.values())
