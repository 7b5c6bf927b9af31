"""Authorization: what each API asks of the authorizer, and what it tells those who may not.

Nouns: a *guard* stands in front of the handler of one API. It asks what the principal of the
connection may do, hands the handler what is left of the request, and puts what it refused into the
answer; so handlers know of nobody but clients who may do everything. Its *rules* say the same in
words, and make up a page of the docs. Where what is refused cannot be taken out beforehand (a fetch
session, a regular expression), a handler asks by itself, by way of `Access`.

Without an authorizer no guard is called or even loaded. With one, every request is judged anew, so
a change of the ACLs holds from the next request on.

Source: KafkaApis, ControllerApis, AuthHelper.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mockbroker.handlers.authorization.access import GUARDS, Access
from mockbroker.handlers.base import FORWARDED, at_controller
from mockbroker_protocol import ApiKey

if TYPE_CHECKING:
    from mockbroker.handlers.base import Api, RequestContext

_K = ApiKey
ROOMS = {
    "admin": (
        _K.ADD_RAFT_VOTER,
        _K.ALTER_CLIENT_QUOTAS,
        _K.ALTER_PARTITION_REASSIGNMENTS,
        _K.ALTER_REPLICA_LOG_DIRS,
        _K.ALTER_USER_SCRAM_CREDENTIALS,
        _K.CREATE_ACLS,
        _K.DELETE_ACLS,
        _K.DESCRIBE_ACLS,
        _K.DESCRIBE_CLIENT_QUOTAS,
        _K.DESCRIBE_CLUSTER,
        _K.DESCRIBE_LOG_DIRS,
        _K.DESCRIBE_QUORUM,
        _K.DESCRIBE_USER_SCRAM_CREDENTIALS,
        _K.ELECT_LEADERS,
        _K.LIST_CONFIG_RESOURCES,
        _K.LIST_PARTITION_REASSIGNMENTS,
        _K.REMOVE_RAFT_VOTER,
        _K.UNREGISTER_BROKER,
        _K.UPDATE_FEATURES,
    ),
    "configs": (_K.ALTER_CONFIGS, _K.DESCRIBE_CONFIGS, _K.INCREMENTAL_ALTER_CONFIGS),
    "groups": (
        _K.CONSUMER_GROUP_DESCRIBE,
        _K.CONSUMER_GROUP_HEARTBEAT,
        _K.DELETE_GROUPS,
        _K.DESCRIBE_GROUPS,
        _K.FIND_COORDINATOR,
        _K.HEARTBEAT,
        _K.JOIN_GROUP,
        _K.LEAVE_GROUP,
        _K.LIST_GROUPS,
        _K.SYNC_GROUP,
    ),
    "metadata": (_K.DESCRIBE_TOPIC_PARTITIONS, _K.METADATA),
    "offsets": (_K.OFFSET_COMMIT, _K.OFFSET_DELETE, _K.OFFSET_FETCH, _K.TXN_OFFSET_COMMIT),
    "records": (
        _K.DELETE_RECORDS,
        _K.DESCRIBE_PRODUCERS,
        _K.FETCH,
        _K.LIST_OFFSETS,
        _K.OFFSET_FOR_LEADER_EPOCH,
        _K.PRODUCE,
    ),
    "topics": (_K.CREATE_PARTITIONS, _K.CREATE_TOPICS, _K.DELETE_TOPICS),
    "transactions": (
        _K.ADD_OFFSETS_TO_TXN,
        _K.ADD_PARTITIONS_TO_TXN,
        _K.DESCRIBE_TRANSACTIONS,
        _K.END_TXN,
        _K.INIT_PRODUCER_ID,
        _K.LIST_TRANSACTIONS,
        _K.WRITE_TXN_MARKERS,
    ),
}
"""The modules of this package, and the APIs whose guards stand there: each is loaded when the first
of them is asked for."""

_ROOM_OF = {key: room for room, keys in ROOMS.items() for key in keys}

OPEN = {
    ApiKey.API_VERSIONS: "asked before the client has said who it is",
    ApiKey.SASL_HANDSHAKE: "asked before the client has proved who it is",
    ApiKey.SASL_AUTHENTICATE: "asked before the client has proved who it is",
    ApiKey.CREATE_DELEGATION_TOKEN: "CREATE_TOKENS on the owner, if it is somebody else"
    " (asked by the handler itself): `DELEGATION_TOKEN_AUTHORIZATION_FAILED`",
    ApiKey.RENEW_DELEGATION_TOKEN: "for the token's owner and renewers",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "for the token's owner and renewers",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "one's own; of others those with DESCRIBE on the token or"
    " DESCRIBE_TOKENS on its owner (asked by the handler itself): the others are left out",
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: "everyone may",
    ApiKey.PUSH_TELEMETRY: "everyone may",
}
"""The APIs without a guard, and why, in words for the docs."""

_FORWARDED = frozenset(ApiKey[name] for name in FORWARDED)


def guarded(api: Api, ctx: RequestContext, request: Any) -> object:
    """What the handler of `api` answers to a client that may not do everything."""
    if api.key in OPEN:
        return api.handle(ctx, request)
    guard = GUARDS.get(api.key)
    if guard is None:
        import_module(f"{__name__}.{_ROOM_OF[api.key]}")
        guard = GUARDS[api.key]
    if api.key not in _FORWARDED:
        return guard.judge(Access(ctx), request, partial(api.handle, ctx))
    return at_controller(
        api.key, ctx, request, lambda: guard.judge(Access(ctx), request, partial(api.handle, ctx))
    )


def load_all() -> None:
    """Fill `GUARDS` with the guards of every room."""
    for room in ROOMS:
        import_module(f"{__name__}.{room}")
