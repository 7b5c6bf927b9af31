"""Typed, version-free structs: what handlers and clients see of a message.

One module per API, generated from `schemas/` by `python -m mockbroker_protocol.generate`. A struct
has every field that exists in any version; a field that a version lacks holds Kafka's default after
decoding and is left out when encoding. Use keyword arguments: the order of the fields is not part
of the interface (codecs fill them by position, which is why they are not keyword-only).
"""
