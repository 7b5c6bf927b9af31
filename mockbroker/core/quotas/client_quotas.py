"""Client quotas of users, client ids and addresses (KIP-546).

`throttling` enforces them, from the first quota on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.brokers.broker_life import STOPPED
from mockbroker.core.errors import ApiError
from mockbroker.core.quotas.throttling import Entity, Throttling, address_of
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.brokers.broker import Broker

USER, CLIENT_ID, IP = "user", "client-id", "ip"
_ORDER = (CLIENT_ID, USER, IP)

_INT_MAX, _LONG_MAX = 2**31 - 1, 2**63 - 1
# Quota -> its largest integer, or None if it may be a fraction (QuotaConfig).
_CLIENT_KEYS: dict[str, int | None] = {
    "producer_byte_rate": _LONG_MAX,
    "consumer_byte_rate": _LONG_MAX,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_TYPES = {_INT_MAX: "an INT", _LONG_MAX: "a LONG"}
_IP_KEYS: dict[str, int | None] = {"connection_creation_rate": _INT_MAX}


class MatchType(IntEnum):
    """How a filter component matches names (ClientQuotaFilterComponent)."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


class FilterComponent(NamedTuple):
    """One component of a filter: an entity type and the names that match."""

    entity_type: str
    match: int
    name: str | None


def entity_of(pairs: Iterable[tuple[str, str | None]]) -> Entity:
    """An entity, its pairs in the order of Java's maps; the last name of a type counts."""
    return tuple(sorted(dict(pairs).items(), key=_rank))


def _rank(pair: tuple[str, str | None]) -> tuple[int, str]:
    return (_ORDER.index(pair[0]) if pair[0] in _ORDER else len(_ORDER), pair[0])


class ClientQuotas:
    """The quotas of a cluster by entity; `config_int` gives the value of a broker config."""

    __slots__ = ("_config_int", "_quotas", "throttling")

    def __init__(self, config_int: Callable[[str], int]) -> None:
        self._config_int = config_int
        self._quotas: dict[Entity, dict[str, float]] = {}
        # None until the first quota is set.
        self.throttling: Throttling | None = None

    def alter(
        self, entity: Entity, values: Mapping[str, float | None], *, validate_only: bool
    ) -> None:
        """Set quotas of one entity; None removes one. Raises ApiError INVALID_REQUEST."""
        keys = _check_entity(entity)
        for key, value in values.items():
            if value is not None:
                _check_value(keys, key, value)
        if validate_only:
            return
        quotas = dict(self._quotas.get(entity, {}))
        for key, value in values.items():
            if value is None:
                quotas.pop(key, None)
            else:
                quotas[key] = value
        self._quotas.pop(entity, None)
        if quotas:
            self._quotas[entity] = quotas
        if self.throttling is not None:
            self.throttling.quotas_changed()
        elif quotas:
            self.throttling = Throttling(self._quotas, self._config_int)

    def reset_measurements(self) -> None:
        """Reset all measurements."""
        if self.throttling is not None:
            self.throttling.reset_measurements()

    def broker_changed(self, broker: Broker) -> None:
        """Drop the measurements of a stopped broker."""
        if self.throttling is not None and broker.state == STOPPED:
            self.throttling.remove_broker(broker.node_id)

    def describe(
        self, components: list[FilterComponent], *, strict: bool
    ) -> list[tuple[Entity, dict[str, float]]]:
        """The entities that match each component, and have no other types if `strict`.

        Raises ApiError for a malformed filter.
        """
        _check_filter(components)
        return [
            (entity, quotas)
            for entity, quotas in self._quotas.items()
            if (not strict or len(entity) == len(components))
            and all(_matches(component, dict(entity)) for component in components)
        ]


def _refuse(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def _check_entity(entity: Entity) -> dict[str, int | None]:
    """The quotas that the entity may have. Raises ApiError for an invalid entity."""
    names = dict(entity)
    if not names:
        raise _refuse("Invalid empty client quota entity")
    for entity_type, name in names.items():
        if entity_type not in (USER, CLIENT_ID, IP):
            raise _refuse(f"Unhandled client quota entity type: {entity_type}")
        if name == "":
            raise _refuse(f"Empty {entity_type} not supported")
    if IP not in names:
        return _CLIENT_KEYS
    if len(names) > 1:
        raise _refuse(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or "
            "ClientId"
        )
    address = names[IP]
    if address is not None and not _is_address(address):
        raise _refuse(f"{address} is not a valid IP or resolvable host.")
    return _IP_KEYS


def _is_address(text: str) -> bool:
    """Whether the text is an IP address or `localhost`; no other host name is resolved."""
    try:
        address_of(text)
    except ValueError:
        return False
    return True


def _check_value(keys: Mapping[str, int | None], key: str, value: float) -> None:
    if key not in keys:
        raise _refuse(f"Invalid configuration key {key}")
    if value <= 0:
        raise _refuse(f"Quota {key} must be greater than 0")
    largest = keys[key]
    if largest is None:
        return
    if value > largest:
        raise _refuse(f"Proposed value for {key} is too large for {_TYPES[largest]}.")
    if value % 1.0 > 1e-6:
        raise _refuse(f"{key} cannot be a fractional value.")


def _check_filter(components: list[FilterComponent]) -> None:
    seen: set[str] = set()
    for entity_type, match, name in components:
        if not entity_type:
            raise _refuse("Invalid empty entity type.")
        if entity_type in seen:
            raise _refuse(f"Entity type {entity_type} cannot appear more than once in the filter.")
        if entity_type not in (USER, CLIENT_ID, IP):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {entity_type}")
        seen.add(entity_type)
        if match == MatchType.EXACT and name is None:
            raise _refuse("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if match in (MatchType.DEFAULT, MatchType.SPECIFIED) and name is not None:
            raise _refuse(
                f"Request specified MATCH_TYPE_{MatchType(match).name}, but also specified a match "
                "string."
            )
        if match not in MatchType._value2member_map_:
            raise _refuse(f"Unknown match type {match}")
    if IP in seen and len(seen) > 1:
        raise _refuse(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )


def _matches(component: FilterComponent, names: Mapping[str, str | None]) -> bool:
    entity_type, match, name = component
    if entity_type not in names:
        return False
    # SPECIFIED matches any name. DEFAULT matches None, which is the name of the default entity.
    return match == MatchType.SPECIFIED or names[entity_type] == name
