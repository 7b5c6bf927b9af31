"""`mockbroker codec show Fetch 12`: the fields of a version of a message, and its emitted code."""

from __future__ import annotations

from mockbroker_protocol.api_key import ApiKey
from mockbroker_protocol.codec import Codec, request_codec, response_codec
from mockbroker_protocol.declarations import declared_keys
from mockbroker_protocol.emit import decode_source, encode_source
from mockbroker_protocol.exceptions import UnknownVersionError
from mockbroker_protocol.tables import rows, text_table

DIRECTIONS = ("request", "response")
HEAD = ("field", "type", "versions", "null", "tag", "default", "names")


def find_api(name: str) -> ApiKey:
    """The API meant by `Fetch`, `list_offsets` or `2`. Raises UnknownVersionError."""
    plain = name.lower().replace("_", "").replace("-", "")
    for key in declared_keys():
        if plain in (str(key.value), key.name.lower().replace("_", "")):
            return key
    raise UnknownVersionError(f"no API is called {name!r}")


def codec_of(api: str | ApiKey, version: int, direction: str) -> Codec:
    """The codec of "request" or "response". Raises UnknownVersionError; ValueError otherwise."""
    key = api if isinstance(api, ApiKey) else find_api(api)
    if direction not in DIRECTIONS:
        raise ValueError(f"direction is {direction!r}, not request or response")
    return (request_codec if direction == "request" else response_codec)(key, version)


def show(api: str | ApiKey, version: int, direction: str = "request") -> str:
    """The schema of one version as a table, then the emitted source of its decode and encode.

    Raises UnknownVersionError for an API or a version that is not declared.
    """
    codec = codec_of(api, version, direction)
    flexible = "flexible" if codec.flexible else "not flexible"
    title = f"{codec.message.name} v{version} ({flexible}; versions {codec.message.versions})"
    table = text_table(HEAD, [tuple(row) for row in rows(codec.message, version)])
    decode, _ = decode_source(codec.tree)
    encode, _ = encode_source(codec.tree)
    return f"{title}\n\n{table}\n\n{decode}\n\n{encode}"
