"""`codec show`: finding an API by any of its names, and what is printed."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ApiKey
from mockbroker_protocol.exceptions import UnknownVersionError
from mockbroker_protocol.show import find_api, show


@pytest.mark.parametrize("name", ["ListOffsets", "list_offsets", "LIST-OFFSETS", "2"])
def test_an_api_is_found_by_key_or_name_in_any_spelling(name: str) -> None:
    """Kafka itself writes it in three ways."""
    assert find_api(name) is ApiKey.LIST_OFFSETS


def test_the_table_holds_the_fields_of_that_version_alone() -> None:
    """Fetch v12 is the last one with topic names."""
    text = show("Fetch", 12)
    assert text.startswith("FetchRequest v12 (flexible; versions 4-18)\n")
    assert "\ntopics[].topic " in text
    assert "topics[].topic_id" not in text
    assert "topics[].topic_id" in show("Fetch", 13)
    line = next(line for line in text.splitlines() if line.startswith("cluster_id"))
    assert line.split() == ["cluster_id", "string", "12+", "yes", "0", "null"]


def test_the_source_of_both_directions_follows() -> None:
    """It is what runs, so it must compile."""
    text = show(ApiKey.PRODUCE, 9, "response")
    source = text[text.index("def decode(") :]
    assert "def encode(message):" in source
    compile(source, "shown", "exec")


def test_what_is_not_declared_is_named() -> None:
    """No API of that name, no such version, no such direction."""
    with pytest.raises(UnknownVersionError, match="no API is called 'Fetsch'"):
        show("Fetsch", 12)
    with pytest.raises(UnknownVersionError, match="FetchRequest has versions 4-18, not 19"):
        show("Fetch", 19)
    with pytest.raises(ValueError, match="direction is 'sideways'"):
        show("Fetch", 12, "sideways")
