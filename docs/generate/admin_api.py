"""The admin API, drawn from its OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markdown import page as join
from markdown import table

from mockbroker.admin.v1.openapi import PROBLEMS, document
from mockbroker.admin.v1.routes import ALL_ENDPOINTS
from mockbroker.core.journal.filters import Filter

INTRO = """
# HTTP

The admin API, drawn from the OpenAPI document that `GET /openapi.json` returns. `GET /` returns an
index as JSON, or the console if the Accept header prefers HTML.
[Use a cluster over HTTP](../howto/serve.md#use-a-cluster-over-http) has examples.

A request body is JSON. A field with `*` is required. An error is a problem document (RFC 9457)
whose `field` names the wrong field. A request that fails changes nothing, except that `appended`
records of a refused append are stored.
"""

Json = Mapping[str, Any]

# A body with more fields has one for each action.
MAX_FIELDS = 20


def page() -> str:
    found = document(ALL_ENDPOINTS)
    schemas: Json = found["components"]["schemas"]
    operations = [
        (method.upper(), path, operation)
        for path, methods in found["paths"].items()
        for method, operation in methods.items()
    ]
    by_answer: dict[str, None] = {}
    rows: dict[str, list[tuple[str, ...]]] = {tag["name"]: [] for tag in found["tags"]}
    for method, path, operation in operations:
        answer = answer_of(operation)
        by_answer |= dict.fromkeys(names_in(answer))
        [tag] = operation["tags"]
        rows[tag].append(
            (
                f"`{method} {path}`",
                operation["summary"],
                parameters_of(operation),
                body_of(operation, schemas),
                words(answer) if "$ref" in str(answer) else ", ".join(media_of(operation)),
            )
        )
    return join(
        INTRO,
        "## Endpoints",
        *(
            join(
                f"### {tag['name'].capitalize()}",
                f"{tag['description']}.",
                table(
                    ("endpoint", "what it does", "parameters", "body", "answer"), rows[tag["name"]]
                ),
            ).strip()
            for tag in found["tags"]
        ),
        "## Errors",
        table(("status", "meaning"), [(code, text) for code, text in sorted(PROBLEMS.items())]),
        "## Answers",
        *(struct_of(name, schemas[name]) for name in reached(by_answer, schemas)),
    )


def parameters_of(operation: Json) -> str:
    """The parameters; the conditions on journal events are listed once, on their own page."""
    conditions = set(Filter.__struct_fields__)
    declared = operation["parameters"]
    filtered = conditions <= {each["name"] for each in declared}
    shown = [each for each in declared if not filtered or each["name"] not in conditions]
    words = [parameter(each) for each in shown]
    return ", ".join(["[conditions](journal.md#conditions)", *words] if filtered else words)


def parameter(declared: Json) -> str:
    return f"`{declared['name']}`" + ("\\*" if declared["required"] else "")


def answer_of(operation: Json) -> Json:
    """The schema of the answer; empty where the answer is no JSON, or nothing."""
    [ok] = [each for status, each in operation["responses"].items() if status.startswith("2")]
    contents = list(ok.get("content", {}).values())
    return contents[0].get("schema", {}) if contents else {}


def media_of(operation: Json) -> list[str]:
    [ok] = [each for status, each in operation["responses"].items() if status.startswith("2")]
    return [f"`{media}`" for media in ok.get("content", {})] or ["nothing"]


def body_of(operation: Json, schemas: Json) -> str:
    if "requestBody" not in operation:
        return ""
    contents = operation["requestBody"]["content"]
    fields = fields_of(contents["application/json"]["schema"], schemas)
    return f"{fields}; or such lines" if len(contents) > 1 else fields


def fields_of(schema: Json, schemas: Json) -> str:
    """The fields of a body; of one that may have several shapes, each of them."""
    if "$ref" in schema:
        return fields_of(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "items" in schema:
        return f"list of {fields_of(schema['items'], schemas)}"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            shapes = (fields_of(each, schemas) for each in schema[key])
            return " or ".join(dict.fromkeys(shapes))
    properties = schema.get("properties", {})
    if len(properties) > MAX_FIELDS:
        return "one of the [actions](rules.md) with its arguments"
    required = schema.get("required", ())
    return ", ".join(f"`{name}`" + ("\\*" if name in required else "") for name in properties)


def names_in(schema: object) -> dict[str, None]:
    """The names of the structs that a schema refers to, in order."""
    found: dict[str, None] = {}
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "$ref":
                found[value.rpartition("/")[2]] = None
            else:
                found |= names_in(value)
    elif isinstance(schema, list):
        for each in schema:
            found |= names_in(each)
    return found


def reached(names: Mapping[str, None], schemas: Json) -> list[str]:
    """The structs, and those that they hold, each once."""
    found: dict[str, None] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found[name] = None
            waiting += names_in(schemas[name])
    return sorted(name for name in found if schemas[name].get("properties"))


def struct_of(name: str, schema: Json) -> str:
    meaning = " ".join(schema.get("description", "").split())
    rows = [(f"`{field}`", words(kind)) for field, kind in schema["properties"].items()]
    return join(f"### {name}", meaning, table(("field", "type"), rows)).strip()


def words(schema: Json) -> str:
    """A schema's type in words."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(words(each) for each in schema[key]))
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    kind = schema.get("type", "any value")
    if kind == "array":
        prefixed = schema.get("prefixItems")
        items = schema.get("items")
        if prefixed:
            return f"[{', '.join(words(each) for each in prefixed)}]"
        return f"list of {words(items)}" if items else "list"
    if kind == "object" and schema.get("additionalProperties"):
        return f"mapping to {words(schema['additionalProperties'])}"
    return str(kind)
