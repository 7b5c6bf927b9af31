"""Envelope (key 58). A broker forwards a client's request in it to the controller (KIP-590)."""

from mockbroker_protocol.declare import *

REQUEST = Message("EnvelopeRequest", "0", flexible="0+").of(
    Field("request_data", BYTES),
    Field("request_principal", BYTES, nullable=True),
    Field("client_host_address", BYTES),
)

RESPONSE = Message("EnvelopeResponse", "0", flexible="0+").of(
    Field("response_data", BYTES, nullable=True, default=None),
    Field("error_code", INT16),
)
