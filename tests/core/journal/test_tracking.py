"""The identity of the records of a topic."""

from __future__ import annotations

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.errors import ActionError
from mockbroker.core.journal.journal import Journal
from mockbroker.core.journal.tracking import Tracking, parse_path, value_at
from mockbroker.core.validation import ValidationError

ORDER = {"id": 7, "lines": [{"sku": "a"}, {"sku": "b"}], "by hand": True}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.id", 7),
        ("$.lines[1].sku", "b"),
        ("$['by hand']", True),
        ("$.lines[2].sku", None),
        ("$.id.deeper", None),
        ("$[0]", None),
    ],
)
def test_a_path_leads_to_one_value_or_nowhere(path: str, found: object) -> None:
    assert value_at(parse_path(path), ORDER) == found


@pytest.mark.parametrize("path", ["", "$", "id", "$..id", "$.*", "$.lines[*]", "$.id ", "$.a["])
def test_other_paths_are_refused(path: str) -> None:
    """Filters, wildcards and searches may lead to several values."""
    with pytest.raises(ValueError, match="is no JSONPath to one value"):
        parse_path(path)


def test_records_are_identified_in_one_way() -> None:
    """Neither in none nor in several."""
    for wrong in ({}, {"key": "$.id", "header": "id"}, {"header": "id", "unique_values": True}):
        with pytest.raises(ValueError, match="give one of key"):
            Tracking("t", **wrong)


def test_the_journal_keeps_the_trackings() -> None:
    """The last word about a topic counts; a wrong path is refused before anything changes."""
    cluster = Cluster(now_ms=lambda: 0, seed=1)
    with pytest.raises(ActionError, match="keeps no journal"):
        cluster.track("t", key="$.id")
    cluster.runtime.journal = journal = Journal(lambda: 0)
    cluster.track("t", header="id")
    cluster.track("t", key="$.id")
    with pytest.raises(ValidationError, match="is no JSONPath"):
        cluster.track("t", key="id")
    assert journal.tracked == {"t": Tracking("t", key="$.id")}
