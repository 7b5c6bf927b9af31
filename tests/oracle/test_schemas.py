"""Our declarations are Kafka's schemas: fields, order, types, nullability, tags, defaults."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker_protocol.declarations import shapes_of
from mockbroker_protocol.declare import Array, Field, Scalar, Shape
from tests.oracle.catalogue import Entry, default_json, entries, kafka_name, versions_43
from tests.support.java_pipe import JavaPipe

pytestmark = pytest.mark.java

ENTRIES = list(entries())
Json = dict[str, Any]


def our_fields(entry: Entry, version: int, shape: Shape) -> list[Json]:
    """The fields of one version as the oracle dumps a Schema: tagged ones last, by tag."""
    present = [field for field in shape.fields if version in field.versions]
    plain = [field for field in present if field.tag is None]
    tagged = sorted((f for f in present if f.tag is not None), key=lambda f: f.tag or 0)
    described = [our_field(entry, version, shape, field) for field in (*plain, *tagged)]
    if entry.is_flexible(version):
        described.append({"type": "TAGGED_FIELDS"})
    return described


def our_field(entry: Entry, version: int, shape: Shape, field: Field) -> Json:
    nullable = version in field.nullable
    flexible = entry.is_flexible(version) and field.compact
    described: Json = {"name": kafka_name(shape, field)}
    described |= our_type(entry, version, field.type, nullable=nullable, flexible=flexible)
    if field.tag is not None:
        described["tag"] = field.tag
    return described


def our_type(
    entry: Entry, version: int, type_: Scalar | Array | Shape, *, nullable: bool, flexible: bool
) -> Json:
    if isinstance(type_, Array):
        of = our_type(entry, version, type_.element, nullable=False, flexible=flexible)
        return {"type": "COMPACT_ARRAY" if flexible else "ARRAY", "nullable": nullable, "of": of}
    if isinstance(type_, Shape):
        fields = our_fields(entry, version, type_)
        return {"type": "STRUCT", "nullable": nullable, "fields": fields}
    name = type_.value.upper()
    if type_ in (Scalar.STRING, Scalar.BYTES, Scalar.RECORDS):
        name = ("COMPACT_" if flexible else "") + ("NULLABLE_" if nullable else "") + name
    return {"type": name.replace("BOOL", "BOOLEAN"), "nullable": nullable}


@pytest.fixture(scope="module")
def dumps(kafka43: JavaPipe) -> dict[str, Json]:
    """What Kafka 4.3.1 declares, by the name of its class."""
    names = [entry.kafka_class for entry in ENTRIES]
    results = kafka43.ask("schema", [{"name": name} for name in names])
    return dict(zip(names, results, strict=True))


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_every_version_has_kafkas_fields(entry: Entry, dumps: dict[str, Json]) -> None:
    theirs = dumps[entry.kafka_class]["versions"]
    ours = {str(v): our_fields(entry, v, entry.message.shape) for v in versions_43(entry)}
    # The oldest versions of an API may be left out: a 4.3 broker refuses them.
    assert ours == {version: theirs.get(version) for version in ours}
    assert max(map(int, theirs)) == entry.versions[-1]


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_every_struct_has_kafkas_name_and_defaults(entry: Entry, dumps: dict[str, Json]) -> None:
    theirs = dumps[entry.kafka_class]["defaults"]
    top, *nested = reversed(shapes_of(entry.message.shape))
    ours = {"": default_json(entry, top)}
    ours |= {shape.name: default_json(entry, shape) for shape in nested}
    # Kafka's classes still carry the fields of versions that we leave out.
    assert ours == {
        name: {field: value for field, value in fields.items() if field in ours[name]}
        for name, fields in theirs.items()
    }


def as_3_9_dumps(described: Any) -> Any:
    """What a Schema of 3.9 leaves unsaid: whether records or a struct may be null."""
    if isinstance(described, list):
        return [as_3_9_dumps(each) for each in described]
    if not isinstance(described, dict):
        return described
    rewritten = {key: as_3_9_dumps(value) for key, value in described.items()}
    if described["type"] == "STRUCT" or described["type"].endswith("RECORDS"):
        rewritten["nullable"] = None
        rewritten["type"] = described["type"].replace("NULLABLE_", "")
    return rewritten


def test_3_9_1_declares_the_same_for_the_versions_it_knows(kafka39: JavaPipe) -> None:
    apis = kafka39.ask_one("apis")["apis"]
    stable = {api[kind]: api["highestStable"] for api in apis for kind in ("request", "response")}
    stable["RequestHeaderData"], stable["ResponseHeaderData"] = 2, 1
    known = [entry for entry in ENTRIES if entry.kafka_class in stable]
    results = kafka39.ask("schema", [{"name": entry.kafka_class} for entry in known])
    compared = {
        (entry.name, int(version)): as_3_9_dumps(theirs)
        for entry, result in zip(known, results, strict=True)
        for version, theirs in result["versions"].items()
        if int(version) in entry.versions and int(version) <= stable[entry.kafka_class]
    }
    assert len(compared) > 450
    ours = {entry.name: entry for entry in known}
    differing = [
        f"{name} v{version}"
        for (name, version), theirs in compared.items()
        if as_3_9_dumps(our_fields(ours[name], version, ours[name].message.shape)) != theirs
    ]
    assert differing == []


FETCH = next(entry for entry in ENTRIES if entry.name == "FetchRequest")


def changed(fields: list[Field], name: str, /, **changes: Any) -> list[Field]:
    """The fields with one of them declared a little differently."""
    fields = list(fields)
    at = next(n for n, field in enumerate(fields) if field.name == name)
    old = fields[at]
    fields[at] = Field(
        changes.get("name", old.name),
        changes.get("type", old.type),
        changes.get("versions", str(old.versions)),
        nullable=changes.get("nullable", str(old.nullable)),
        tag=changes.get("tag", old.tag),
        default=changes.get("default", old.default),
    )
    return fields


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("max_wait_ms", {"name": "max_wait"}),
        ("max_wait_ms", {"type": Scalar.INT64}),
        ("session_id", {"versions": "8+"}),
        ("rack_id", {"nullable": True}),
        ("cluster_id", {"tag": 3}),
        ("topics", {"type": Array(Scalar.INT32)}),
    ],
    ids=["name", "type", "versions", "nullability", "tag", "element"],
)
def test_a_field_declared_otherwise_would_be_found(
    name: str, changes: Json, dumps: dict[str, Json]
) -> None:
    theirs = dumps[FETCH.kafka_class]["versions"]
    fields = list(FETCH.message.shape.fields)
    assert found(fields, theirs) == []
    assert found(changed(fields, name, **changes), theirs) != []


def found(fields: list[Field], theirs: Json) -> list[int]:
    """The versions in which these fields are not Kafka's."""
    shape = Shape("FetchRequest").of(*fields)
    return [v for v in FETCH.versions if our_fields(FETCH, v, shape) != theirs[str(v)]]
