"""The bytes of a request or an answer, field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mockbroker.core.journal.entries import Entry, RequestEntry, ResponseEntry
from mockbroker.pipeline.spool.redaction import redacted
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.exceptions import ProtocolError

if TYPE_CHECKING:
    from mockbroker_protocol.explain import Explanation

# A larger frame is not explained byte by byte: that takes a second for a megabyte.
EXPLAINED_BYTES_MAX = 64 << 10
FIELDS_MAX = 2_000
BATCH_FIELDS_MAX = 500
TEXT_CHARS_MAX = 1_000


class FieldView(msgspec.Struct, frozen=True):
    """Bytes `start` to `end` (without it) of a frame are the field `path`, with its value as text.

    If it is `wrong`, the text says why the bytes are not that field.
    """

    start: int
    end: int
    path: str
    text: str
    wrong: bool


class FrameView(msgspec.Struct, frozen=True):
    """The bytes of a request with its header, or of an answer without; sizes are left out.

    `bytes` is its size. `hex` has all bytes or, of a large frame, none; then `note` says so.
    `fields` are in the order of their bytes; `left_out` counts those that the view leaves out.
    """

    bytes: int
    hex: str
    fields: list[FieldView]
    left_out: int
    note: str


def frame_view(entry: Entry) -> FrameView | None:
    """The frame of a request or answer; None for another entry, or without an answer."""
    # construct takes as long to import as the rest of the admin API.
    from mockbroker_protocol.explain import explain_body, explain_request

    if isinstance(entry, RequestEntry):
        size = len(entry.frame)
        if size > EXPLAINED_BYTES_MAX:
            return _large(size)
        shown = redacted(entry)
        data = bytes(shown.frame)
        return _explained(explain_request(data, BATCH_FIELDS_MAX), shown is not entry)
    if isinstance(entry, ResponseEntry) and entry.body is not None:
        size = sum(map(len, entry.body))
        if size > EXPLAINED_BYTES_MAX:
            return _large(size)
        answer = redacted(entry)
        data = b"".join(answer.body or ())
        try:
            codec = response_codec(entry.api_key, entry.api_version)
        except ProtocolError as error:
            return FrameView(len(data), data.hex(), [], 0, f"{error}.")
        return _explained(explain_body(data, codec, BATCH_FIELDS_MAX), answer is not entry)
    return None


def _large(size: int) -> FrameView:
    note = (
        f"A frame of {size:,} bytes is shown without its bytes: more than {EXPLAINED_BYTES_MAX:,}."
    )
    return FrameView(size, "", [], 0, note)


def _explained(found: Explanation, may_be_redacted: bool) -> FrameView:
    spans = found.spans
    fields = [
        FieldView(span.start, span.end, span.path, _short(span.text), span.wrong)
        for span in spans[:FIELDS_MAX]
    ]
    note = "Secrets are left out of the bytes." if may_be_redacted else ""
    return FrameView(len(found.data), found.data.hex(), fields, len(spans) - len(fields), note)


def _short(text: str) -> str:
    if len(text) <= TEXT_CHARS_MAX:
        return text
    return f"{text[:TEXT_CHARS_MAX]}… ({len(text):,} characters)"
