"""Rules from keywords."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from mockbroker.api.types import PLACES, Conditions, RuleDict
from mockbroker.core.validation import nearest


def rule_of(effect: str, fields: Mapping[str, object], conditions: Conditions) -> RuleDict:
    """A rule with one effect; fields and conditions that are None are left out.

    Raises TypeError, with the nearest name, for an unknown condition.
    """
    rule: dict[str, dict[str, object] | object] = {}
    given = {name: value for name, value in fields.items() if value is not None}
    match: dict[str, object] = {}
    when: dict[str, object] = {}
    for word, value in cast("Mapping[str, object]", conditions).items():
        if word not in PLACES:
            raise TypeError(f"unknown keyword {word!r}{nearest(word, PLACES)}")
        if value is None:
            continue
        part, name = PLACES[word]
        {"match": match, "when": when, "": rule}[part][name] = value
    rule |= {"match": match, "when": when, "do": {effect: given}}
    return cast("RuleDict", rule)
