"""Answers as plain data, without what two right brokers may differ in (`normalised.toml`)."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from mockbroker_protocol.records import BatchHeader, iter_records, split_batches
from tests.differential.session import Exchange

RULES_FILE = Path(__file__).with_name("normalised.toml")
ACTIONS = ("drop", "alias", "sign", "sort", "mask")


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do with the fields whose path (`Api.field.field`) matches the pattern, and why.

    `kind` names the aliases; `text` is the regular expression of what a mask covers.
    """

    path: str
    do: str
    why: str
    kind: str = ""
    text: str = ""


def load_rules(path: Path = RULES_FILE) -> list[Rule]:
    """The committed rules. Raises ValueError for one that says nothing sensible."""
    with path.open("rb") as file:
        rules = msgspec.convert(tomllib.load(file)["rule"], list[Rule])
    for rule in rules:
        if rule.do not in ACTIONS or not rule.why:
            raise ValueError(f"{rule.path}: unknown action {rule.do!r} or no reason")
        if bool(rule.text) != (rule.do == "mask"):
            raise ValueError(f"{rule.path}: a mask has a text, and nothing else has one")
    return rules


class Normaliser:
    """One peer's answers in one case. Aliases number drawn ids by their first appearance."""

    def __init__(self, rules: list[Rule]) -> None:
        self._rules = rules
        self._aliases: defaultdict[str, dict[object, str]] = defaultdict(dict)
        self._blind = False

    def exchange(self, exchange: Exchange) -> object:
        """The exchange as plain data."""
        answer = exchange.answer
        if isinstance(answer, bytes):
            answer = answer.hex()
        name = f"{exchange.label} {exchange.api.name} v{exchange.version}".strip()
        return {name: self._value(answer, exchange.api.name)}

    def _value(self, value: object, path: str) -> object:
        match value:
            case msgspec.Struct():
                return self._struct(value, path)
            case list() | tuple():
                if self._rule(path, "sort") and not self._blind:
                    value = sorted(value, key=lambda item: self._without_aliases(item, path))
                return [self._value(item, path) for item in value]
            case bytes() | bytearray() | memoryview():
                if path.endswith((".records",)):
                    return _records(memoryview(value))
                return bytes(value).hex()
            case _:
                return value

    def _without_aliases(self, item: object, path: str) -> str:
        """What to sort by: new aliases are given in this order, so it must not depend on them."""
        self._blind = True
        try:
            return repr(self._value(item, path))
        finally:
            self._blind = False

    def _struct(self, value: msgspec.Struct, path: str) -> dict[str, object]:
        shown: dict[str, object] = {}
        for field in value.__struct_fields__:
            at = f"{path}.{field}"
            if self._rule(at, "drop"):
                continue
            found: Any = getattr(value, field)
            if rule := self._rule(at, "alias"):
                shown[field] = self._alias(rule.kind or field, found)
            elif self._rule(at, "sign"):
                shown[field] = "known" if found >= 0 else found
            else:
                shown[field] = self._masked(self._value(found, at), at)
        return shown

    def _masked(self, value: object, path: str) -> object:
        """A message without the parts that rules cover."""
        if isinstance(value, str):
            for rule in self._rules:
                if rule.do == "mask" and fnmatchcase(path, rule.path):
                    value = re.sub(rule.text, "…", value)
        return value

    def _alias(self, kind: str, value: object) -> object:
        """Absent and special values stay; a drawn one becomes `kind#n`."""
        if value in (None, "", -1, 0) or value == bytes(16):
            return value if not isinstance(value, bytes) else "zero"
        names = self._aliases[kind]
        if self._blind:
            return names.get(value, kind)
        return names.setdefault(value, f"{kind}#{len(names) + 1}")

    def _rule(self, path: str, action: str) -> Rule | None:
        for rule in self._rules:
            if rule.do == action and fnmatchcase(path, rule.path):
                return rule
        return None


def _records(view: memoryview) -> list[object]:
    """Whole batches, header and records; an incomplete last one is left out, as clients do."""
    return [
        {
            "offset": header.base_offset,
            "leader_epoch": header.leader_epoch,
            "attributes": header.attributes,
            "producer": (header.producer_epoch, header.base_sequence),
            "records": [
                (
                    record.offset,
                    # A marker has the time at which it was written.
                    None if header.is_control else record.timestamp,
                    record.key,
                    record.value,
                    record.headers,
                )
                for record in iter_records(header, batch)
            ],
        }
        for header, batch in split_batches(view)
        if isinstance(header, BatchHeader)
    ]
