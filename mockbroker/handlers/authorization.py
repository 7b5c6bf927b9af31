"""Authorization: the ACLs that each API requires, and their checks.

An *authorization* is a part of an API's contract. Its `rules` describe the required ACLs; they make
up a page of the docs. Its `check`, if it has one, runs before the handler. The handler then gets
only the authorized part of the request. Other handlers check with `AuthHelper` themselves: if the
resources are not in the request (a fetch session, a regular expression, a topic id), or if
unauthorized resources are left out of a list.

Each request is checked again, so a change of the ACLs takes effect with the next request.

Source: KafkaApis, ControllerApis, AuthHelper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec.structs import replace

from mockbroker.core.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from mockbroker.core.security.authorized_operations import SUPPORTED, bits
from mockbroker.core.security.authorizer import java_host
from mockbroker.handlers.base import Parked, at_controller
from mockbroker_protocol import ApiKey, ErrorCode

if TYPE_CHECKING:
    from mockbroker.handlers.base import Api, RequestContext

R = TypeVar("R")
T = TypeVar("T")

DENIED = {
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The error for an operation on a resource that the client is not authorized for."""


class AuthHelper:
    """The authorization of one request's client; without an authorizer, everything is allowed."""

    __slots__ = ("_authorizer", "_host", "_principal", "ctx")

    def __init__(self, ctx: RequestContext) -> None:
        self.ctx = ctx
        self._authorizer = ctx.cluster.authorizer
        self._principal = ctx.connection.principal
        self._host = "" if self._authorizer is None else java_host(ctx.connection.client_host)

    @property
    def is_needed(self) -> bool:
        """Whether there is an authorizer."""
        return self._authorizer is not None

    def allows(self, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """Whether the client is authorized for an operation on a resource."""
        authorizer = self._authorizer
        return authorizer is None or authorizer.allows(
            self._principal, self._host, operation, kind, name
        )

    def cluster(self, operation: AclOperation) -> bool:
        return self.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def topic(self, operation: AclOperation, name: str) -> bool:
        return self.allows(operation, ResourceType.TOPIC, name)

    def group(self, operation: AclOperation, group_id: str) -> bool:
        return self.allows(operation, ResourceType.GROUP, group_id)

    def transactional_id(self, operation: AclOperation, transactional_id: str) -> bool:
        return self.allows(operation, ResourceType.TRANSACTIONAL_ID, transactional_id)

    def any_topic(self, operation: AclOperation) -> bool:
        """Whether there may be a topic on which the operation is allowed."""
        authorizer = self._authorizer
        return authorizer is None or authorizer.allows_on_any(
            self._principal, self._host, operation, ResourceType.TOPIC
        )

    def topic_id(self, operation: AclOperation, topic_id: bytes) -> bool:
        """Whether the operation is allowed on the topic with this id; an unknown id is allowed, so
        that the handler answers UNKNOWN_TOPIC_ID.
        """
        topic = self.ctx.image.topics_by_id.get(topic_id)
        return topic is None or self.topic(operation, topic.name)

    def operations(self, kind: ResourceType, name: str) -> int:
        """The operations on a resource that the client is authorized for, as bits."""
        return bits(*(each for each in SUPPORTED[kind] if self.allows(each, kind, name)))

    def cluster_operations(self) -> int:
        """The same for the cluster; 0 for a client that is not authorized to describe it."""
        if not self.cluster(AclOperation.DESCRIBE):
            return 0
        return self.operations(ResourceType.CLUSTER, CLUSTER_NAME)


class RequiredAcl(NamedTuple):
    """An operation on a kind of resource."""

    operation: AclOperation
    resource: ResourceType


def on_cluster(operation: AclOperation) -> RequiredAcl:
    return RequiredAcl(operation, ResourceType.CLUSTER)


def on_topic(operation: AclOperation) -> RequiredAcl:
    return RequiredAcl(operation, ResourceType.TOPIC)


def on_group(operation: AclOperation) -> RequiredAcl:
    return RequiredAcl(operation, ResourceType.GROUP)


def on_transactional_id(operation: AclOperation) -> RequiredAcl:
    return RequiredAcl(operation, ResourceType.TRANSACTIONAL_ID)


class AuthorizationRule(NamedTuple):
    """One of `acls` is required. The docs show the rules, and tests compare them with the checks.

    `about` names the resources, `otherwise` the answer to an unauthorized request.
    """

    acls: tuple[RequiredAcl, ...]
    about: str
    otherwise: str


def requires(*acls: RequiredAcl, about: str = "each", otherwise: str = "") -> AuthorizationRule:
    """A rule; the default of `otherwise` is the resource's error for the resource alone."""
    error = DENIED[acls[-1].resource].name
    return AuthorizationRule(acls, about, otherwise or f"`{error}` for it")


Handle = Callable[[Any], Any]
"""Calls the handler with a request, which may be a part of the client's."""

Check = Callable[[AuthHelper, Any, Handle], object]
"""Answers a request: by the handler, for all or a part of it, or with an error response."""


class Authorization(NamedTuple):
    """The ACLs that an API requires, and their check.

    Attributes:
    - check: runs before the handler; None if the handler checks itself, or nothing is checked.
    - rules: the ACLs required.
    - reason: without rules, why nothing is checked, for the docs.
    """

    check: Check | None
    rules: tuple[AuthorizationRule, ...] = ()
    reason: str = ""


def everyone(reason: str) -> Authorization:
    """No ACL is required, for a reason."""
    return Authorization(None, (), reason)


def checked(check: Check, *rules: AuthorizationRule) -> Authorization:
    """A check of the API's own; the rules describe it."""
    return Authorization(check, rules)


def by_handler(*rules: AuthorizationRule) -> Authorization:
    """The handler checks the rules itself."""
    return Authorization(None, rules)


class Requirement(NamedTuple):
    """A requirement of a whole request: one of `acls`, on the resource that `field` names.

    `has_message` is for the APIs whose error response has a message in Kafka; with `repeats_code`
    it is the error's sentence. `otherwise` follows the error in the docs.
    """

    acls: tuple[RequiredAcl, ...]
    field: str = ""
    has_message: bool = False
    otherwise: str = ""
    repeats_code: bool = False

    @property
    def error(self) -> ErrorCode:
        return DENIED[self.acls[0].resource]

    @property
    def rule(self) -> AuthorizationRule:
        return AuthorizationRule(self.acls, "", f"`{self.error.name}`{self.otherwise}")

    def is_met(self, auth: AuthHelper, request: Any) -> bool:
        name = getattr(request, self.field) if self.field else CLUSTER_NAME
        return any(auth.allows(*acl, name) for acl in self.acls)


def named(acl: RequiredAcl, field: str) -> Requirement:
    """An ACL on the group or transactional id that a field of the request names."""
    return Requirement((acl,), field)


def unmet(auth: AuthHelper, request: Any, requirements: Iterable[Requirement]) -> Any:
    """The error response for the first requirement that is not met; None if all are."""
    for each in requirements:
        if not each.is_met(auth, request):
            ctx = auth.ctx
            # The words of AuthHelper.authorizeClusterOperation.
            message = f"The request {ApiKey(ctx.header.api_key).name} is not authorized."
            if each.repeats_code:
                message = each.error.message
            return ctx.refusal(request, each.error, message if each.has_message else None)
    return None


def required(
    *requirements: Requirement, rules: tuple[AuthorizationRule, ...] = ()
) -> Authorization:
    """The first requirement that is not met refuses the request; the handler checks `rules`."""

    def check(auth: AuthHelper, request: Any, handle: Handle) -> object:
        refusal = unmet(auth, request, requirements)
        return handle(request) if refusal is None else refusal

    return Authorization(check, (*(each.rule for each in requirements), *rules))


def clusterwide(
    *operations: AclOperation,
    has_message: bool = True,
    otherwise: str = "",
    repeats_code: bool = False,
) -> Authorization:
    """One of these operations on the cluster, or CLUSTER_AUTHORIZATION_FAILED."""
    acls = tuple(on_cluster(operation) for operation in operations)
    return required(
        Requirement(acls, has_message=has_message, otherwise=otherwise, repeats_code=repeats_code)
    )


def each_row(
    *acls: RequiredAcl,
    field: str = "topics",
    name: str = "name",
    into: str = "",
    ids_since: int | None = None,
    first: tuple[Requirement, ...] = (),
    rules: tuple[AuthorizationRule, ...] = (),
    refused_first: bool = False,
) -> Authorization:
    """One of the ACLs on each row of the request; the handler sees the rows that are authorized.

    The others have the rows of the API's error response.

    Args:
        acls: the operations, each on the cluster or on the resource that the row names.
        field: the request's array.
        name: the field of a row that names the resource; "" if the row itself is the name.
        into: the response's array, if its name is not `field`.
        ids_since: the version from which `topic_id` names a topic.
        first: requirements of the whole request, which come before.
        rules: what the handler checks by itself.
        refused_first: whether the refused rows come before those of the handler.
    """
    error = DENIED[acls[-1].resource]
    into = into or field

    def check(auth: AuthHelper, request: Any, handle: Handle) -> object:
        refusal = unmet(auth, request, first)
        if refusal is not None:
            return refusal
        ctx = auth.ctx
        by_id = ids_since is not None and ctx.api_version >= ids_since

        def allowed(row: Any) -> bool:
            if by_id:
                return auth.topic_id(acls[-1].operation, row.topic_id)
            resource = getattr(row, name) if name else row
            return any(
                auth.allows(
                    *acl, CLUSTER_NAME if acl.resource is ResourceType.CLUSTER else resource
                )
                for acl in acls
            )

        granted, denied = split(getattr(request, field), allowed)
        if not denied:
            return handle(request)
        refused = getattr(ctx.refusal(replace(request, **{field: denied}), error), into)

        def add_refused(response: Any) -> Any:
            rows = getattr(response, into)
            setattr(response, into, [*refused, *rows] if refused_first else [*rows, *refused])
            return response

        return when_done(handle(replace(request, **{field: granted})), add_refused)

    required_first = (requirement.rule for requirement in first)
    return Authorization(check, (*required_first, requires(*acls), *rules))


def authorized(api: Api, ctx: RequestContext, request: Any) -> object:
    """The authorized answer of `api`, on a cluster with an authorizer."""
    check = api.authorize.check
    if check is None:
        return api.handle(ctx, request)
    handle = partial(api.handle, ctx)
    if not api.forwarded:
        return check(AuthHelper(ctx), request, handle)
    return at_controller(ctx, request, lambda: check(AuthHelper(ctx), request, handle))


def when_done(reply: R | Parked[R], edit: Callable[[R], R]) -> R | Parked[R]:
    """The reply with its response edited, now or when a parked one is complete."""
    if not isinstance(reply, Parked):
        return edit(reply)
    if reply.done:
        return edit(reply.response)
    later: Parked[R] = Parked()
    reply.on_complete = lambda: later.complete(edit(reply.response))
    return later


def split(items: Iterable[T], allowed: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """(what is allowed, what is not), each in order."""
    granted: list[T] = []
    denied: list[T] = []
    for item in items:
        (granted if allowed(item) else denied).append(item)
    return granted, denied
