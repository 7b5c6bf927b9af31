"""The Kafka wire: what the bytes between a client and a broker mean. Knows nothing of brokers.

Nouns, from the outside in:

* A *frame* is a size (int32) and that many bytes: a *header* and a *message* (`framing`).
* An *API* is named by its key (`ApiKey`), has a request and a response, each in several *versions*.
* A *declaration* (`schemas/`) states once which fields a message has in which version. Everything
  else about messages is derived from it: the `construct` tree of one version (`primitives`), the
  typed *struct* that handlers see (`messages/`, version-free), the tables in the docs.
* A *codec* (`codec`) turns the bytes of one message in one version into a struct and back. It is
  straight-line Python, emitted from the construct tree on first use (`emit`). Where it fails,
  construct reads the bytes again and says which field and which byte (`DecodeError`).
* A *record batch* (`records`) is what Produce carries and the log keeps; codecs pass it through as
  bytes without looking inside.

Importing this package gives `ApiKey` and `ErrorCode` and costs next to nothing.
"""

from __future__ import annotations

from mockbroker_protocol.api_key import ApiKey
from mockbroker_protocol.errors import ErrorCode

__all__ = ["ApiKey", "ErrorCode"]
