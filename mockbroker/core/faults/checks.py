"""Checks that the fields of a rule fit together. Impossible rules are refused."""

from __future__ import annotations

from mockbroker.core import validation as cv
from mockbroker.core.faults.effects import answers, delivery, falsify
from mockbroker.core.faults.effects.answers import check_field
from mockbroker.core.faults.effects.connections import StallHandshake, is_at_accept
from mockbroker.core.faults.matching import Matcher
from mockbroker.core.faults.paths import dotted_paths, request_shape, response_shape
from mockbroker.core.faults.rules import Match, Rule, api_key, api_keys, api_name, request_paths
from mockbroker.core.faults.share_facts import ACKNOWLEDGING, SHARE_FETCH
from mockbroker.core.validation import ValidationError
from mockbroker_protocol import ApiKey

# The known properties of a connection before its first request.
_OF_CONNECTIONS = frozenset(("broker", "listener", "source", "connection"))

# The APIs of effects that exist for some APIs only. A rule without `api` is for these.
ONLY_FOR: dict[str, frozenset[int]] = {
    "record_errors": frozenset((int(ApiKey.PRODUCE),)),
    "corrupt_batch": frozenset((int(ApiKey.PRODUCE), int(ApiKey.FETCH), int(ApiKey.SHARE_FETCH))),
    "duplicate_records": frozenset((int(ApiKey.FETCH), int(ApiKey.SHARE_FETCH))),
    "hide_records": frozenset((int(ApiKey.FETCH), int(ApiKey.SHARE_FETCH))),
    "fail_reauthentication": frozenset((int(ApiKey.SASL_AUTHENTICATE),)),
    "falsify_api_versions": frozenset((int(ApiKey.API_VERSIONS),)),
    "falsify_metadata": frozenset((int(ApiKey.METADATA),)),
}
# The same for conditions of matches.
MATCHED_ONLY_FOR: dict[str, frozenset[int]] = {
    "acknowledge_type": ACKNOWLEDGING,
    "delivery_count": frozenset((SHARE_FETCH,)),
}
# The effects of a rule that the answer decides; those with a phase, in the phase after.
ANSWER_EFFECTS = frozenset(
    (
        "close",
        "corrupt_batch",
        "corrupt_reply",
        "delay",
        "drop_reply",
        "duplicate_records",
        "duplicate_reply",
        "error_after",
        "hide_records",
        "hold",
        "observe",
        "reorder_replies",
        "rewrite",
        "slow",
        "throttle",
        "truncate_reply",
    )
)
# The requests between brokers, and the effects that a rule can have on them.
HOP_APIS = frozenset(
    (
        int(ApiKey.FETCH),
        int(ApiKey.OFFSET_FOR_LEADER_EPOCH),
        int(ApiKey.ALTER_PARTITION),
        int(ApiKey.WRITE_TXN_MARKERS),
        int(ApiKey.ADD_PARTITIONS_TO_TXN),
        int(ApiKey.BROKER_HEARTBEAT),
        int(ApiKey.ENVELOPE),
        int(ApiKey.INITIALIZE_SHARE_GROUP_STATE),
        int(ApiKey.READ_SHARE_GROUP_STATE),
        int(ApiKey.WRITE_SHARE_GROUP_STATE),
        int(ApiKey.DELETE_SHARE_GROUP_STATE),
        int(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY),
    )
)
HOP_EFFECTS = frozenset(
    ("delay", "drop_reply", "drop_request", "error", "error_after", "hold", "observe")
)
HOP_FIELDS = frozenset(
    (
        "api",
        "between_brokers",
        "from_broker",
        "group",
        "partition",
        "producer_id",
        "to_broker",
        "topic",
        "topic_id",
        "transactional_id",
        "where",
    )
)
_SASL = frozenset((int(ApiKey.SASL_HANDSHAKE), int(ApiKey.SASL_AUTHENTICATE)))


def effective_api_keys(rule: Rule, path: str = "") -> frozenset[int]:
    """The APIs that a rule can fire for: those of its match, or of its effects; empty for all."""
    keys = api_keys(rule.match, f"{path}match.api")
    limits = [
        only for name, only in MATCHED_ONLY_FOR.items() if getattr(rule.match, name) is not None
    ]
    for name, effect in rule.do.items():
        if isinstance(effect, StallHandshake) and effect.at == "sasl":
            limits.append(_SASL)
        elif name in ONLY_FOR:
            limits.append(ONLY_FOR[name])
    for only in limits:
        keys = keys & only if keys else only
    return keys


def check_rule(rule: Rule, path: str) -> None:
    """Raise ValidationError where parts of a rule contradict each other; `path` ends with a dot."""
    keys = api_keys(rule.match, f"{path}match.api")
    for name in rule.do:
        only = ONLY_FOR.get(name)
        if only is not None and keys and not keys & only:
            names = ", ".join(sorted(api_name(key) for key in only))
            raise ValidationError(f"{path}match.api", f"{name} is for {names}")
    _check_share_match(rule, keys, path)
    if rule.match.is_for_hops:
        _check_hop(rule, keys, path)
    _check_accept(rule, path)
    _check_paths(rule.match, keys, path)
    Matcher(rule.match, f"{path}match")
    for name, effect in rule.do.items():
        if isinstance(effect, answers.Rewrite):
            _check_rewrite(effect, keys, f"{path}do.{name}")
        elif isinstance(effect, falsify.FalsifyApiVersions):
            for at, api in enumerate(effect.hide):
                api_key(api, f"{path}do.{name}.hide[{at}]")
            for api in effect.max:
                api_key(api, f"{path}do.{name}.max.{api}")
    if rule.when.every is not None and rule.when.nth is not None:
        raise ValidationError(f"{path}when.nth", "give nth or every, not both")
    when = rule.when
    if when.from_ is not None and when.until is not None and when.until <= when.from_:
        raise ValidationError(f"{path}when.until", "`until` must be after `from`")
    for name in ("after_offset", "after_records"):
        if getattr(when, name) is not None and rule.match.topic is None:
            raise ValidationError(f"{path}when.{name}", "the match must name a topic")


def _check_share_match(rule: Rule, keys: frozenset[int], path: str) -> None:
    for name, only in MATCHED_ONLY_FOR.items():
        if getattr(rule.match, name) is not None and keys and not keys & only:
            names = " and ".join(sorted(api_name(key) for key in only))
            raise ValidationError(f"{path}match.{name}", f"this is for {names}")
    if rule.match.delivery_count is not None:
        _check_answer_effects(rule, path)


def _check_answer_effects(rule: Rule, path: str) -> None:
    """Refuse effects that come before the answer, which alone has delivery counts."""
    from mockbroker.core.actions import ACTIONS

    for name, effect in rule.do.items():
        if name in ACTIONS:
            continue
        if name not in ANSWER_EFFECTS:
            raise ValidationError(
                f"{path}do.{name}",
                "the answer has the delivery counts, so the request is applied before; there are: "
                + ", ".join(sorted(ANSWER_EFFECTS)),
            )
        if getattr(effect, "phase", delivery.AFTER) != delivery.AFTER:
            raise ValidationError(
                f"{path}do.{name}.phase", "the answer has the delivery counts: use after"
            )
        if isinstance(effect, answers.Rewrite) and effect.request:
            raise ValidationError(
                f"{path}do.{name}.request", "the answer has the delivery counts: rewrite that"
            )


def _check_hop(rule: Rule, keys: frozenset[int], path: str) -> None:
    """Refuse, for hops, the fields that only clients, their connections or their answers have."""
    from mockbroker.core.actions import ACTIONS

    match = rule.match
    if match.between_brokers is False:
        raise ValidationError(
            f"{path}match.between_brokers",
            "from_broker and to_broker are for requests between brokers, so it is true or left out",
        )
    for field in match.__struct_fields__:
        if getattr(match, field) is not None and field not in HOP_FIELDS:
            instead = "; say to_broker" if field == "broker" else ""
            raise ValidationError(
                f"{path}match.{field}",
                f"requests between brokers have no such field{instead}",
            )
    strange = keys - HOP_APIS
    if strange:
        names = ", ".join(sorted(map(api_name, strange)))
        known = ", ".join(sorted(map(api_name, HOP_APIS)))
        raise ValidationError(
            f"{path}match.api", f"brokers do not send each other {names}; they send {known}"
        )
    for name, effect in rule.do.items():
        if name not in ACTIONS and name not in HOP_EFFECTS:
            raise ValidationError(
                f"{path}do.{name}",
                "this is for clients' requests; of one between brokers there are: "
                + ", ".join(sorted(HOP_EFFECTS)),
            )
        if isinstance(effect, delivery.DropReply) and effect.then != "keep":
            raise ValidationError(
                f"{path}do.{name}.then", "no connection exists between brokers: use keep"
            )


def _check_accept(rule: Rule, path: str) -> None:
    at_accept = [name for name, effect in rule.do.items() if is_at_accept(effect)]
    if not at_accept:
        return
    for field in rule.match.__struct_fields__:
        if getattr(rule.match, field) is not None and field not in _OF_CONNECTIONS:
            raise ValidationError(
                f"{path}match.{field}",
                f"{at_accept[0]} happens before the first request; a connection has only: "
                + ", ".join(sorted(_OF_CONNECTIONS)),
            )
    others = [name for name in rule.do if name not in at_accept]
    from mockbroker.core.actions import ACTIONS

    wrong = [name for name in others if name not in ACTIONS and name != "observe"]
    if wrong:
        raise ValidationError(
            f"{path}do.{wrong[0]}", f"this cannot be combined with {at_accept[0]}"
        )


def _check_paths(match: Match, keys: frozenset[int], path: str) -> None:
    if not match.where or not keys:
        return
    known = request_paths(keys)
    known_bare = {each.replace("[]", "") for each in known}
    for field_path in match.where:
        if field_path not in known and field_path not in known_bare:
            raise ValidationError(
                f"{path}match.where.{field_path}", f"no such field{cv.nearest(field_path, known)}"
            )


def _check_rewrite(effect: answers.Rewrite, keys: frozenset[int], path: str) -> None:
    if not keys:
        raise ValidationError(path, "the match must name an api, because the fields differ")
    for side, fields, shape_of in (
        ("answer", effect.answer, response_shape),
        ("request", effect.request, request_shape),
    ):
        for field_path, value in fields.items():
            for key in keys:
                shape = shape_of(key)
                known = set(dotted_paths(shape))
                plain = {each.removesuffix("[]") for each in known} | known
                if field_path not in plain:
                    raise ValidationError(
                        f"{path}.{side}.{field_path}",
                        f"no such field{cv.nearest(field_path, known)}",
                    )
                reason = check_field(shape, field_path, value)
                if reason is not None:
                    raise ValidationError(f"{path}.{side}.{field_path}", reason)
