"""AddOffsetsToTxn (key 25), versions 0-4.

Generated from `schemas/add_offsets_to_txn.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class AddOffsetsToTxnRequest(Struct, gc=False):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""
    unknown_tags: UnknownTags = None


class AddOffsetsToTxnResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_tags: UnknownTags = None
