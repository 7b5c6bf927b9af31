"""Kafka's entity types: the fields that its message definitions give one have the same here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from zipfile import ZipFile

import pytest

from mockbroker_protocol.declare import Array, Shape
from tests.oracle.catalogue import Entry, camel, entries, kafka_name
from tests.oracle.conftest import POM_43
from tests.support.maven import jars

pytestmark = pytest.mark.java

Json = dict[str, Any]
Names = dict[str, str | None]
# Other messages have definitions too, but their fields have no entity types.
ENTRIES = [entry for entry in entries() if not entry.schema.__name__.endswith("headers")]
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


@pytest.fixture(scope="module")
def definitions() -> Mapping[str, Json]:
    """Every definition in the jar of the clients, by the name of its message."""
    (clients,) = (jar for jar in jars(POM_43) if jar.name.startswith("kafka-clients-"))
    with ZipFile(clients) as jar:
        texts = [
            jar.read(name).decode()
            for name in jar.namelist()
            if name.startswith("common/message/") and name.endswith(".json")
        ]
    found = [json.loads(_COMMENT.sub("", text)) for text in texts]
    return {each["name"]: each for each in found}


def theirs(definition: Json) -> Names:
    structs = {each["name"]: each["fields"] for each in definition.get("commonStructs", ())}

    def walk(fields: list[Json], above: str) -> Iterator[tuple[str, str | None]]:
        for field in fields:
            path = above + field["name"][0].lower() + field["name"][1:]
            yield path, field.get("entityType")
            inner = field.get("fields") or structs.get(field["type"].removeprefix("[]"), [])
            yield from walk(inner, f"{path}.")

    return dict(walk(definition.get("fields", []), ""))


def ours(shape: Shape, above: str = "") -> Iterator[tuple[str, str | None]]:
    for field in shape.fields:
        path = above + camel(kafka_name(shape, field))
        yield path, None if field.entity is None else field.entity.value
        inner = field.type.element if isinstance(field.type, Array) else field.type
        if isinstance(inner, Shape):
            yield from ours(inner, f"{path}.")


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_every_field_has_kafkas_entity_type(entry: Entry, definitions: Mapping[str, Json]) -> None:
    definition = definitions.get(entry.name)
    found = dict(ours(entry.message.shape))
    if definition is None:  # a record of a coordinator's log, in another jar
        assert set(found.values()) <= {None}
        return
    known = theirs(definition)
    # Kafka's definitions still have fields of versions that we leave out.
    assert found == {path: known.get(path, "no such field") for path in found}
