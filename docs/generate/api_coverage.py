"""Which APIs the handlers serve, read off the handlers themselves."""

from __future__ import annotations

import tomllib
from pathlib import Path

from markdown import page as join
from markdown import table

from mockbroker.core.metadata.profiles import LATEST, profile_of
from mockbroker.handlers import load_all
from mockbroker.handlers.base import APIS
from mockbroker_protocol import ApiKey
from mockbroker_protocol.declarations import schema_module
from mockbroker_protocol.declare import NEVER, Message

NOTES = Path(__file__).resolve().parents[1] / "_data" / "api_notes.toml"

INTRO = f"""
# API coverage

The versions come from the handlers' contracts, as do the answers of `ApiVersions`. The table also
has the versions of a Kafka {LATEST} broker and the first flexible version (KIP-482).
"""


def notes() -> dict[str, str]:
    """API name in upper snake case -> what is worth knowing of it."""
    data = tomllib.loads(NOTES.read_text(encoding="utf-8"))
    served: dict[str, str] = data["served"]
    return served


def kafka_name(key: ApiKey) -> str:
    """`LIST_OFFSETS` as Kafka's message name, `ListOffsets`."""
    return str(schema_module(key.name.lower()).REQUEST.name).removesuffix("Request")


def versions(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def kafka_versions(key: ApiKey, request: Message, high: int) -> str:
    # A 4.3 broker advertises Produce from 0 on but serves it from 3 (KAFKA-18659).
    low = 0 if key is ApiKey.PRODUCE else request.versions.low
    return versions(low, high)


def page() -> str:
    load_all()
    known = notes()
    served = []
    for number, high in sorted(profile_of(LATEST).max_versions.items()):
        key = ApiKey(number)
        request: Message = schema_module(key.name.lower()).REQUEST
        flexible = "never" if request.flexible == NEVER else str(request.flexible.low)
        kafka = kafka_versions(key, request, high)
        api = APIS.get(number)
        if api is None:
            raise SystemExit(f"a {LATEST} broker serves {key.name}, and there is no handler of it")
        ours = versions(api.min_version, api.max_version)
        served.append((number, kafka_name(key), ours, kafka, flexible, known.get(key.name, "")))
    return join(
        INTRO, table(("key", "API", "served", f"Kafka {LATEST}", "flexible from", "notes"), served)
    )
