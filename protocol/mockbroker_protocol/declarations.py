"""Finding declarations by API key and direction, or by module name.

Modules of `schemas/` are imported on first use. A module of an API has `REQUEST` and `RESPONSE`;
the others list theirs in `MESSAGES`.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from mockbroker_protocol.api_key import ApiKey
from mockbroker_protocol.declare import Array, Field, FieldType, Message, Shape


def module_names() -> list[str]:
    """The names of all modules in `schemas/`, sorted."""
    from pathlib import Path  # 4 ms, and brokers never list the folder

    folder = Path(__file__).parent / "schemas"
    return sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def schema_module(name: str) -> ModuleType:
    return import_module(f"mockbroker_protocol.schemas.{name}")


def is_api(module: ModuleType) -> bool:
    return hasattr(module, "REQUEST")


def messages_of(module: ModuleType) -> tuple[Message, ...]:
    """The messages that one module of `schemas/` declares."""
    if is_api(module):
        return (module.REQUEST, module.RESPONSE)
    messages: tuple[Message, ...] = module.MESSAGES
    return messages


def declared_keys() -> list[ApiKey]:
    """The keys of the APIs that have a declaration."""
    names = set(module_names())
    return [key for key in ApiKey if key.name.lower() in names]


def shapes_of(type_: FieldType) -> list[Shape]:
    """The shape of a field's type, with those inside it, innermost first."""
    if isinstance(type_, Array):
        return shapes_of(type_.element)
    if not isinstance(type_, Shape):
        return []
    inner = [shape for field in type_.fields for shape in shapes_of(field.type)]
    return [*inner, type_]


def class_names(module: ModuleType) -> dict[int, str]:
    """The name of the struct class of each shape in `module`, by the shape's `id()`.

    A name that the request and the response both use gets their kind in front; a name that two
    messages of another module use for different shapes gets the message's name.
    """
    owners: dict[str, list[tuple[Message, Shape]]] = {}
    for message in messages_of(module):
        for shape in shapes_of(message.shape):
            owners.setdefault(shape.name, []).append((message, shape))
    names: dict[int, str] = {}
    for name, uses in owners.items():
        shared = len({id(message) for message, _ in uses}) > 1
        same = len({id(shape) for _, shape in uses}) == 1
        for message, shape in uses:
            if shared and is_api(module):
                prefix = "Request" if message is module.REQUEST else "Response"
            else:
                prefix = "" if same else message.name
            names[id(shape)] = prefix + name
    return names


def shares_default(field: Field) -> bool:
    """Whether structs may share one frozen default: a nested struct of scalars that is not null.

    Fetch answers carry three of these for each partition, nearly always absent; making them anew
    each time would cost more than the partition itself.
    """
    shape = field.type
    return (
        isinstance(shape, Shape)
        and field.default is not None
        and not any(isinstance(inner.type, Array | Shape) for inner in shape.fields)
    )
