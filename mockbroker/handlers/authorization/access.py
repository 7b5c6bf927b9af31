"""What guards are made of: the questions that a request may ask, and the registry of guards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from mockbroker.core.security.acls import CLUSTER_NAME, Operation, ResourceType
from mockbroker.core.security.authorized_operations import SUPPORTED, bits
from mockbroker.core.security.authorizer import java_host
from mockbroker.handlers.base import Parked

if TYPE_CHECKING:
    from mockbroker.handlers.base import RequestContext
    from mockbroker_protocol import ApiKey

R = TypeVar("R")
T = TypeVar("T")

# Hands a request to the handler.
Go = Callable[[Any], Any]


class Access:
    """What the client behind one request may do. Without an authorizer, everything."""

    __slots__ = ("_authorizer", "_host", "_principal", "ctx")

    def __init__(self, ctx: RequestContext) -> None:
        self.ctx = ctx
        self._authorizer = ctx.cluster.authorizer
        self._principal = ctx.connection.principal
        self._host = java_host(ctx.connection.client_host)

    def may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether the client may carry out an operation on a resource."""
        authorizer = self._authorizer
        return authorizer is None or authorizer.allows(
            self._principal, self._host, operation, kind, name
        )

    def cluster(self, operation: Operation) -> bool:
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def topic(self, operation: Operation, name: str) -> bool:
        return self.may(operation, ResourceType.TOPIC, name)

    def group(self, operation: Operation, group_id: str) -> bool:
        return self.may(operation, ResourceType.GROUP, group_id)

    def transactional_id(self, operation: Operation, transactional_id: str) -> bool:
        return self.may(operation, ResourceType.TRANSACTIONAL_ID, transactional_id)

    def any_topic(self, operation: Operation) -> bool:
        """Whether there may be a topic on which the operation is allowed."""
        authorizer = self._authorizer
        return authorizer is None or authorizer.allows_on_any(
            self._principal, self._host, operation, ResourceType.TOPIC
        )

    def operations(self, kind: ResourceType, name: str) -> int:
        """The operations that the client may carry out on a resource, as bits."""
        return bits(*(each for each in SUPPORTED[kind] if self.may(each, kind, name)))

    def cluster_operations(self) -> int:
        """Those on the cluster; none for clients that may not describe it."""
        if not self.cluster(Operation.DESCRIBE):
            return 0
        return self.operations(ResourceType.CLUSTER, CLUSTER_NAME)


class Need(NamedTuple):
    """One thing that a client has to be allowed."""

    operation: Operation
    resource: ResourceType


class Rule(NamedTuple):
    """What an API asks for and what happens otherwise: for the docs, and for tests to compare.

    One of `needs` is enough. `about` says of which resource, `otherwise` what the client is told.
    """

    needs: tuple[Need, ...]
    about: str
    otherwise: str


def needs(*wanted: Need, about: str = "", otherwise: str) -> Rule:
    """A rule; any one of `wanted` will do."""
    return Rule(wanted, about, otherwise)


def cluster(operation: Operation) -> Need:
    return Need(operation, ResourceType.CLUSTER)


def topic(operation: Operation) -> Need:
    return Need(operation, ResourceType.TOPIC)


def group(operation: Operation) -> Need:
    return Need(operation, ResourceType.GROUP)


def transactional_id(operation: Operation) -> Need:
    return Need(operation, ResourceType.TRANSACTIONAL_ID)


class Guard(NamedTuple):
    """What stands in front of one API's handler, and its rules."""

    judge: Callable[[Access, Any, Go], object]
    rules: tuple[Rule, ...]


GUARDS: dict[ApiKey, Guard] = {}

J = TypeVar("J", bound=Callable[..., object])


def guard(key: ApiKey, *rules: Rule) -> Callable[[J], J]:
    """Register the decorated function as the guard of `key`."""

    def register(judge: J) -> J:
        if key in GUARDS:
            raise ValueError(f"two guards for {key.name}")
        GUARDS[key] = Guard(judge, rules)
        return judge

    return register


def after(reply: R | Parked[R], edit: Callable[[R], R]) -> R | Parked[R]:
    """Put the last touches to an answer, now or when it is there."""
    if not isinstance(reply, Parked):
        return edit(reply)
    if reply.done:
        return edit(reply.response)
    later: Parked[R] = Parked()
    reply.on_complete = lambda: later.complete(edit(reply.response))
    return later


def split(items: Iterable[T], allowed: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """(what is allowed, what is not), each in the order in which it came."""
    granted: list[T] = []
    denied: list[T] = []
    for item in items:
        (granted if allowed(item) else denied).append(item)
    return granted, denied
