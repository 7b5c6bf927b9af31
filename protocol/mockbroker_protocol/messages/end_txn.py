"""EndTxn (key 26), versions 0-5.

Generated from `schemas/end_txn.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class EndTxnRequest(Struct, gc=False):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False
    unknown_tags: UnknownTags = None


class EndTxnResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    unknown_tags: UnknownTags = None
