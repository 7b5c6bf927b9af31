"""What the fields of a rule say about each other: impossible rules are refused, not ignored."""

from __future__ import annotations

from mockbroker.core.faults import convert as cv
from mockbroker.core.faults.effects import answers, lies
from mockbroker.core.faults.effects.answers import check_field
from mockbroker.core.faults.effects.connections import StallHandshake, is_at_accept
from mockbroker.core.faults.errors import RuleError
from mockbroker.core.faults.layouts import dotted_paths, request_layout, response_layout
from mockbroker.core.faults.matching import Matcher
from mockbroker.core.faults.rules import Match, Rule, api_key, api_keys, api_name, request_paths
from mockbroker_protocol import ApiKey

# What is known of a connection before its first request.
_OF_CONNECTIONS = frozenset(("broker", "listener", "source", "connection"))

# Effects that make sense for some APIs only; a rule that names no API is for these.
ONLY_FOR: dict[str, frozenset[int]] = {
    "record_errors": frozenset((int(ApiKey.PRODUCE),)),
    "corrupt_batch": frozenset((int(ApiKey.PRODUCE), int(ApiKey.FETCH))),
    "duplicate_records": frozenset((int(ApiKey.FETCH),)),
    "hide_records": frozenset((int(ApiKey.FETCH),)),
    "fail_reauthentication": frozenset((int(ApiKey.SASL_AUTHENTICATE),)),
    "lie_api_versions": frozenset((int(ApiKey.API_VERSIONS),)),
    "lie_metadata": frozenset((int(ApiKey.METADATA),)),
}
_SASL = frozenset((int(ApiKey.SASL_HANDSHAKE), int(ApiKey.SASL_AUTHENTICATE)))


def effective_api_keys(rule: Rule, path: str = "") -> frozenset[int]:
    """The APIs that a rule can fire for: those of its match, or of its effects; empty for all."""
    keys = api_keys(rule.match, f"{path}match.api")
    for name, effect in rule.do.items():
        only = ONLY_FOR.get(name)
        if isinstance(effect, StallHandshake) and effect.at == "sasl":
            only = _SASL
        if only is not None:
            keys = keys & only if keys else only
    return keys


def check_rule(rule: Rule, path: str) -> None:
    """Raise RuleError where the parts of a rule do not go together; `path` ends with a dot."""
    keys = api_keys(rule.match, f"{path}match.api")
    for name in rule.do:
        only = ONLY_FOR.get(name)
        if only is not None and keys and not keys & only:
            names = ", ".join(sorted(api_name(key) for key in only))
            raise RuleError(f"{path}match.api", f"{name} is for {names}")
    _check_accept(rule, path)
    _check_paths(rule.match, keys, path)
    Matcher(rule.match, f"{path}match")
    for name, effect in rule.do.items():
        if isinstance(effect, answers.Rewrite):
            _check_rewrite(effect, keys, f"{path}do.{name}")
        elif isinstance(effect, lies.LieApiVersions):
            for at, api in enumerate(effect.hide):
                api_key(api, f"{path}do.{name}.hide[{at}]")
            for api in effect.max:
                api_key(api, f"{path}do.{name}.max.{api}")
    if rule.when.every is not None and rule.when.nth is not None:
        raise RuleError(f"{path}when.nth", "give nth or every, not both")
    gates = rule.when
    if gates.from_ is not None and gates.until is not None and gates.until <= gates.from_:
        raise RuleError(f"{path}when.until", "this is before `from`")
    for name in ("after_offset", "after_records"):
        if getattr(gates, name) is not None and rule.match.topic is None:
            raise RuleError(f"{path}when.{name}", "the match has to say of which topic")


def _check_accept(rule: Rule, path: str) -> None:
    at_accept = [name for name, effect in rule.do.items() if is_at_accept(effect)]
    if not at_accept:
        return
    for field in rule.match.__struct_fields__:
        if getattr(rule.match, field) is not None and field not in _OF_CONNECTIONS:
            raise RuleError(
                f"{path}match.{field}",
                f"{at_accept[0]} happens before the first request; a connection has only: "
                + ", ".join(sorted(_OF_CONNECTIONS)),
            )
    others = [name for name in rule.do if name not in at_accept]
    from mockbroker.core.faults.actions import ACTIONS

    wrong = [name for name in others if name not in ACTIONS and name != "observe"]
    if wrong:
        raise RuleError(f"{path}do.{wrong[0]}", f"this does not go with {at_accept[0]}")


def _check_paths(match: Match, keys: frozenset[int], path: str) -> None:
    if not match.where:
        return
    known = request_paths(keys) if keys else None
    for field_path in match.where:
        if known is not None and field_path not in known:
            bare = {each for each in known if each.replace("[]", "") == field_path}
            if not bare:
                raise RuleError(
                    f"{path}match.where.{field_path}", f"no such field{_near(field_path, known)}"
                )


def _near(name: str, known: set[str]) -> str:
    return cv.nearest(name, known)


def _check_rewrite(effect: answers.Rewrite, keys: frozenset[int], path: str) -> None:
    if not keys:
        raise RuleError(path, "the match has to say which api, for the fields differ")
    for side, fields, layout in (
        ("answer", effect.answer, response_layout),
        ("request", effect.request, request_layout),
    ):
        for field_path, value in fields.items():
            for key in keys:
                shape = layout(key).shape
                known = set(dotted_paths(shape))
                plain = {each.removesuffix("[]") for each in known} | known
                if field_path not in plain:
                    raise RuleError(
                        f"{path}.{side}.{field_path}",
                        f"no such field{_near(field_path, known)}",
                    )
                reason = check_field(shape, field_path, value)
                if reason is not None:
                    raise RuleError(f"{path}.{side}.{field_path}", reason)
