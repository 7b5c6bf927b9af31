"""SaslHandshake (key 17), versions 0-1.

Generated from `schemas/sasl_handshake.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct


class SaslHandshakeRequest(Struct, gc=False):
    mechanism: str = ""


class SaslHandshakeResponse(Struct, gc=False):
    error_code: int = 0
    mechanisms: list[str] = []
