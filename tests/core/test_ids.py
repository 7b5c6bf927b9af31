"""Ids and random choices: all from the seed, none twice."""

from __future__ import annotations

import re

import pytest

from mockbroker.core.ids import PRODUCER_ID_BLOCK, IdSource, uuid_from_text, uuid_text


def test_equal_seeds_give_equal_ids_and_other_seeds_others():
    def drawn(seed: int) -> list[object]:
        ids = IdSource(seed)
        return [ids.uuid(), ids.member_suffix(), ids.session_id(), ids.producer_id(1), ids.below(9)]

    assert drawn(5) == drawn(5)
    assert drawn(5)[:2] != drawn(6)[:2]


def test_uuids_are_random_ones_and_never_begin_with_a_dash_as_text():
    ids = IdSource(1)
    drawn = [ids.uuid() for _ in range(2000)]
    assert len(set(drawn)) == len(drawn)
    assert not any(uuid_text(uuid).startswith("-") for uuid in drawn)
    assert {uuid[6] >> 4 for uuid in drawn} == {4}
    assert {uuid[8] >> 6 for uuid in drawn} == {2}


def test_a_uuid_and_its_text_convert_both_ways():
    uuid = bytes(range(16))
    assert uuid_text(uuid) == "AAECAwQFBgcICQoLDA0ODw"
    assert uuid_from_text(uuid_text(uuid)) == uuid
    for text in ("", "AAECAwQFBgcICQoLDA0OD", "AAECAwQFBgcICQoLDA0ODww"):
        with pytest.raises(ValueError):  # noqa: PT011 - base64 or our own, both say so
            uuid_from_text(text)


def test_member_suffixes_look_like_java_uuids():
    form = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert re.fullmatch(form, IdSource(3).member_suffix())


def test_each_broker_draws_producer_ids_from_blocks_of_its_own():
    ids = IdSource(0)
    assert [ids.producer_id(1), ids.producer_id(2), ids.producer_id(1)] == [0, 1000, 1]
    drawn = [ids.producer_id(1) for _ in range(PRODUCER_ID_BLOCK)]
    assert drawn[-1] == 2 * PRODUCER_ID_BLOCK + 1
    assert len(set(drawn)) == len(drawn)


def test_below_covers_its_range_evenly():
    ids = IdSource(11)
    counts = [0] * 5
    for _ in range(5000):
        counts[ids.below(5)] += 1
    assert min(counts) > 850


def test_session_ids_are_positive_int32():
    ids = IdSource(2)
    assert all(0 < ids.session_id() < 2**31 for _ in range(500))
