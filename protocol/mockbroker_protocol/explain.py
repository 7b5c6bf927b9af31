"""`mockbroker decode HEX|FILE`: the meaning of each byte of a frame or a batch.

The bytes are read by construct, whose parts report where they begin and end. A damaged message is
therefore explained up to the invalid field.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from io import BytesIO
from itertools import islice
from typing import Any, NamedTuple

from mockbroker_protocol.api_key import ApiKey
from mockbroker_protocol.codec import Codec, named_codec, request_codec, response_codec
from mockbroker_protocol.declarations import declared_keys, schema_module
from mockbroker_protocol.errors import ErrorCode
from mockbroker_protocol.exceptions import DecodeError, ProtocolError
from mockbroker_protocol.explain_records import explain_batches, looks_like_batch
from mockbroker_protocol.headers import (
    RequestHeader,
    decode_request_header,
    request_header_version,
    response_header_version,
)
from mockbroker_protocol.primitives import Malformed
from mockbroker_protocol.show import codec_of, find_api
from mockbroker_protocol.slow import readable_path

SHOWN_BYTES_MAX = 16
CANDIDATES_SHOWN_MAX = 5


_NAMES: dict[str, dict[int, str]] = {
    "code": {code.value: code.name for code in ErrorCode},
    "api_key": {key.value: key.name for key in ApiKey},
}
"""Names of numbers, by the end of the field's name."""


class Span(NamedTuple):
    """Bytes `start` to `end` are the field `path`; or, if `wrong`, `text` says why they are not."""

    start: int
    end: int
    path: str
    text: str
    wrong: bool = False


class TracingStream(BytesIO):
    """A stream to which primitives report the values that they have read."""

    def __init__(self, data: bytes, pos: int) -> None:
        super().__init__(data)
        self.seek(pos)
        self.spans: list[Span] = []
        self.records: list[tuple[int, int]] = []

    def trace(self, path: str, start: int, end: int, value: Any) -> None:
        name = readable_path(path)
        if name.rpartition(".")[2] == "records" and isinstance(value, memoryview) and value:
            self.records.append((end - len(value), end))
            end -= len(value)
        self.spans.append(Span(start, end, name, value_text(name, value)))


class Explanation:
    """The meaning of some bytes."""

    def __init__(self, title: str, data: bytes, batch_spans_max: int | None = None) -> None:
        self.title = title
        self.data = data
        self.spans: list[Span] = []
        self._batch_spans_max = batch_spans_max

    @property
    def whole(self) -> bool:
        """Whether every byte has a meaning."""
        return not any(span.wrong for span in self.spans)

    def message(self, codec: Codec, pos: int) -> int:
        """Explain one message at `pos`; returns where it ends, or -1 if it is damaged."""
        stream = TracingStream(self.data, pos)
        try:
            codec.tree.parse_stream(stream)
            end = stream.tell()
        except Malformed as error:
            self._take(stream)
            self.wrong(error.byte, readable_path(error.path), error.reason)
            return -1
        self._take(stream)
        return end

    def _take(self, stream: TracingStream) -> None:
        for start, end in stream.records:
            for span in islice(explain_batches(self.data[start:end]), self._batch_spans_max):
                stream.spans.append(Span(start + span[0], start + span[1], *span[2:]))
        self.spans += sorted(stream.spans, key=lambda span: (span.start, span.end))

    def wrong(self, byte: int, path: str, reason: str) -> None:
        self.spans.append(Span(byte, byte, path, reason, wrong=True))

    def trailing(self, end: int) -> None:
        """Note bytes after `end`, where the message ends."""
        if 0 <= end < len(self.data):
            count = len(self.data) - end
            self.spans.append(Span(end, len(self.data), "", f"{count} bytes too many", wrong=True))

    def render(self) -> str:
        digits = max(4, len(str(len(self.data))))
        lines = [self.title, ""]
        width = max((len(span.path) for span in self.spans), default=0)
        for span in self.spans:
            shown = self.data[span.start : span.end][:SHOWN_BYTES_MAX].hex()
            if span.end - span.start > SHOWN_BYTES_MAX:
                shown += "…"
            mark = "!" if span.wrong else " "
            column = shown.ljust(SHOWN_BYTES_MAX * 2 + 1)
            at = f"{span.start:{digits}d}"
            lines.append(f"{mark} {at}  {column}  {span.path.ljust(width)}  {span.text}".rstrip())
        return "\n".join(lines) + "\n"


def value_text(name: str, value: Any) -> str:
    """A decoded value in one short line."""
    last = name.rpartition(".")[2]
    if isinstance(value, range):
        return f"{len(value)} elements" if last != "_tags" else f"{len(value)} tags"
    if isinstance(value, tuple):
        return f"tag {value[0]}, {value[1]} bytes"
    if isinstance(value, bytes | memoryview):
        if len(value) == 16 and last.endswith("id"):
            return urlsafe_b64encode(value).decode().rstrip("=")
        return f"{len(value)} bytes"
    if value is None:
        return "null"
    known = _NAMES.get(last.rpartition("error_")[2], {})
    if isinstance(value, int) and value in known:
        return f"{value} {known[value]}"
    return repr(value) if isinstance(value, str) else str(value)


def explain(data: bytes, hint: str | None = None) -> str:
    """Say what `data` is, field by field: offset, bytes, path, value. Never raises for bad bytes.

    Without a hint, a request frame (with or without its size), record batches and a response are
    tried in this order. Hints: `request`, `records`, `response Fetch 12` for a frame, or
    `body FetchRequest 12` for a message without header. Raises UnknownVersionError for a hint that
    names no API or version, ValueError for any other hint.
    """
    return explanation(data, hint).render()


def explanation(data: bytes, hint: str | None = None) -> Explanation:
    """What `explain` prints, as an object; same hints, same errors."""
    words = (hint or "").split()
    if not words:
        return _guess(data)
    if words == ["request"]:
        return explain_request(data)
    if words == ["records"]:
        return _records(data)
    if len(words) == 3 and words[2].isdecimal():
        name, version = words[1], int(words[2])
        if words[0] == "response":
            return explain_response(data, find_api(name), version)
        if words[0] == "body":
            direction = "response" if name.endswith("Response") else "request"
            api = name.removesuffix("Request").removesuffix("Response")
            return explain_body(data, codec_of(api, version, direction))
    raise ValueError(
        f"hint {hint!r}; it may be request, records, response NAME VERSION or body NAME VERSION"
    )


def _guess(data: bytes) -> Explanation:
    request = explain_request(data)
    if request.whole:
        return request
    if looks_like_batch(data):
        return _records(data)
    responses = [] if _claims_to_be_request(data) else list(_responses(data))
    if not responses:
        return request
    responses.sort(key=lambda each: len(each.spans), reverse=True)
    best = responses[0]
    if len(responses) > 1:
        others = [each.title.partition(",")[0] for each in responses[1 : CANDIDATES_SHOWN_MAX + 1]]
        more = len(responses) - 1 - len(others)
        best.title += f"\nor: {', '.join(others)}" + (f" and {more} more" if more > 0 else "")
    return best


def _claims_to_be_request(data: bytes) -> bool:
    """Whether there is a header of a declared request, with a client id in plain letters."""
    for start in (4, 0):
        header = _header_at(data, start)
        if header is not None:
            return bool(header.client_id) and str(header.client_id).isprintable()
    return False


def _header_at(data: bytes, start: int) -> RequestHeader | None:
    try:
        header, _ = decode_request_header(data, start)
        request_codec(header.api_key, header.api_version)
    except ProtocolError:
        return None
    return header


def _sized(explanation: Explanation, *, request: bool = False) -> int:
    """Explain the frame's size if the bytes begin with one; returns where the header begins.

    A wrong size is one only if a request header follows it.
    """
    data = explanation.data
    if len(data) < 8:
        return 0
    size = int.from_bytes(data[:4], "big", signed=True)
    left = len(data) - 4
    if size == left:
        explanation.spans.append(Span(0, 4, "size", str(size)))
        return 4
    if request and _header_at(data, 0) is None and _header_at(data, 4) is not None:
        text = f"{size}, but {left} bytes follow"
        explanation.spans.append(Span(0, 4, "size", text, wrong=True))
        return 4
    return 0


def explain_request(data: bytes, batch_spans_max: int | None = None) -> Explanation:
    """Explain a request, with or without the size of its frame; of each field of records only so
    many spans.
    """
    explanation = Explanation("request", data, batch_spans_max)
    start = _sized(explanation, request=True)
    try:
        header, _ = decode_request_header(data, start)
    except DecodeError as error:
        explanation.wrong(error.byte, error.path, error.reason)
        return explanation
    key, version = ApiKey(header.api_key), header.api_version
    explanation.title = f"{key.name} request v{version}, {len(data)} bytes"
    codec = named_codec("headers", "RequestHeader", request_header_version(key, version))
    pos = explanation.message(codec, start)
    try:
        body = request_codec(key, version)
    except ProtocolError as error:
        explanation.wrong(start + 2, "api_version", str(error))
        return explanation
    explanation.trailing(explanation.message(body, pos))
    return explanation


def explain_response(data: bytes, key: ApiKey, version: int) -> Explanation:
    """Explain a response to that request, with or without the size of its frame."""
    explanation = Explanation(f"{key.name} response v{version}, {len(data)} bytes", data)
    codec = named_codec("headers", "ResponseHeader", response_header_version(key, version))
    body = response_codec(key, version)
    pos = explanation.message(codec, _sized(explanation))
    if pos >= 0:
        explanation.trailing(explanation.message(body, pos))
    return explanation


def _responses(data: bytes) -> Iterator[Explanation]:
    """The responses that these bytes could be, to the last byte: the newest version of each API."""
    for key in declared_keys():
        versions = declared_versions(key)
        for version in reversed(versions):
            explanation = explain_response(data, key, version)
            if explanation.whole:
                yield explanation
                break


def declared_versions(key: ApiKey) -> range:
    """The declared versions of an API."""
    versions = schema_module(key.name.lower()).REQUEST.versions
    return range(versions.low, versions.high + 1)


def _records(data: bytes) -> Explanation:
    explanation = Explanation(f"record batches, {len(data)} bytes", data)
    explanation.spans = [Span(*span) for span in explain_batches(data)]
    return explanation


def explain_body(data: bytes, codec: Codec, batch_spans_max: int | None = None) -> Explanation:
    """Explain a message without its header; of each field of records only so many spans."""
    explanation = Explanation(f"{codec}, {len(data)} bytes", data, batch_spans_max)
    explanation.trailing(explanation.message(codec, 0))
    return explanation
