"""Batches as other programs wrote them, and what is in them."""

from __future__ import annotations

from mockbroker_protocol.records import Record

# Built by a client library: transactional, producer 7 epoch 1, base sequence 5, leader epoch 0.
TRANSACTIONAL_BATCH = bytes.fromhex(
    "00000000000000000000004a0000000002cbf04f280010000000010000018bcfe568000000018bcfe568050000"
    "0000000000070001000000050000000210000000026b0276001e000a02010476760402680278026e01"
)
TRANSACTIONAL_RECORDS = [
    Record(0, 1_700_000_000_000, b"k", b"v"),
    Record(1, 1_700_000_000_005, None, b"vv", (("h", b"x"), ("n", None))),
]

# COMMIT of producer 7 epoch 1 at offset 10, leader epoch 4, coordinator epoch 3.
COMMIT_MARKER = bytes.fromhex(
    "000000000000000a000000420000000402748f17c80030000000000000018bcfe56be80000018bcfe56be8"
    "00000000000000070001ffffffff000000012000000008000000010c00000000000300"
)
