"""All effects by name."""

from __future__ import annotations

import msgspec

from mockbroker.core.faults.effects.answers import Error, ErrorAfter, RecordErrors, Rewrite
from mockbroker.core.faults.effects.connections import (
    ExpireCredential,
    FailReauthentication,
    Observe,
    RefuseConnection,
    StallHandshake,
)
from mockbroker.core.faults.effects.delivery import (
    Close,
    CorruptReply,
    Delay,
    DropReply,
    DropRequest,
    DuplicateReply,
    Hold,
    ReorderReplies,
    Slow,
    Throttle,
    TruncateReply,
)
from mockbroker.core.faults.effects.falsify import FalsifyApiVersions, FalsifyMetadata
from mockbroker.core.faults.effects.records import CorruptBatch, DuplicateRecords, HideRecords

EFFECTS: dict[str, type[msgspec.Struct]] = {
    "error": Error,
    "record_errors": RecordErrors,
    "error_after": ErrorAfter,
    "drop_request": DropRequest,
    "drop_reply": DropReply,
    "close": Close,
    "delay": Delay,
    "hold": Hold,
    "throttle": Throttle,
    "rewrite": Rewrite,
    "slow": Slow,
    "truncate_reply": TruncateReply,
    "corrupt_reply": CorruptReply,
    "corrupt_batch": CorruptBatch,
    "duplicate_reply": DuplicateReply,
    "reorder_replies": ReorderReplies,
    "duplicate_records": DuplicateRecords,
    "hide_records": HideRecords,
    "refuse_connection": RefuseConnection,
    "stall_handshake": StallHandshake,
    "fail_reauthentication": FailReauthentication,
    "expire_credential": ExpireCredential,
    "falsify_api_versions": FalsifyApiVersions,
    "falsify_metadata": FalsifyMetadata,
    "observe": Observe,
}
