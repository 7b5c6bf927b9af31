"""UnregisterBroker (key 64), versions 0.

Generated from `schemas/unregister_broker.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class UnregisterBrokerRequest(Struct, gc=False):
    broker_id: int = 0
    unknown_tags: UnknownTags = None


class UnregisterBrokerResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    unknown_tags: UnknownTags = None
