"""What a case of the secured brokers speaks through: connections of users, and their rights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from mockbroker.client.connection import Connection
from mockbroker.core.security.acls import (
    CLUSTER_NAME,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from mockbroker_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mockbroker_protocol.messages.create_acls import AclCreation, CreateAclsRequest
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from mockbroker_protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from mockbroker_protocol.messages.describe_acls import DescribeAclsRequest
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.differential.dialogue import list_offsets
from tests.differential.session import ANSWER_TIMEOUT_S, Session
from tests.support.sasl import SaslConnection
from tests.support.waiting import wait_until

USERS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
ANY = 1  # of resource types, patterns, operations and permissions

Play = Callable[["AclSession"], None]
CASES: dict[str, Play] = {}

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID, USER = ResourceType.TRANSACTIONAL_ID, ResourceType.USER


def case(play: Play) -> Play:
    """Register a function as a case under its own name."""
    if play.__name__ in CASES:
        raise ValueError(f"two cases are called {play.__name__}")
    CASES[play.__name__] = play
    return play


class AclSession(Session):
    """`who` is the user that asks: alice, who has no rights but those that a case gives her."""

    def __init__(self, name: str, address: tuple[str, int]) -> None:
        super().__init__(name, address, 1)
        self._dummies = 0
        self._unsettled = True  # the case before has just given up its rights

    def connection(self, who: str = "main") -> Connection:
        if self._unsettled and not who.startswith("admin"):
            self.settle()
        if who not in self._connections:
            connection = SaslConnection(self)  # type: ignore[arg-type]
            connection.timeout_s = ANSWER_TIMEOUT_S
            user = "alice" if who == "main" else who.partition(" ")[0]
            assert connection.plain(user, USERS[user]).error_code == 0
            self._connections[who] = connection
        return self._connections[who]

    def endpoint(self, node_id: int, listener: str | None = None) -> tuple[str, int]:
        """Where connections go."""
        return self._address

    # -- rights ------------------------------------------------------------------------------------

    def allow(
        self,
        operation: AclOperation,
        kind: ResourceType,
        name: str = CLUSTER_NAME,
        *,
        user: str = "alice",
        prefixed: bool = False,
        permission: AclPermissionType = AclPermissionType.ALLOW,
        host: str = "*",
    ) -> None:
        """Give a right; it holds everywhere when somebody asks for something again."""
        pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
        creation = AclCreation(kind, name, pattern, f"User:{user}", host, operation, permission)
        self._create(creation)
        self._unsettled = True

    def deny(self, operation: AclOperation, kind: ResourceType, name: str, **how: Any) -> None:
        """Take a right away, whatever else allows it."""
        self.allow(operation, kind, name, permission=AclPermissionType.DENY, **how)

    def clear(self) -> None:
        """Remove every right."""
        everything = DeleteAclsFilter(ANY, None, ANY, None, None, ANY, ANY)
        deleted = self.quietly(DeleteAclsRequest([everything]), 3, "admin")
        assert deleted.filter_results[0].error_code == 0
        self._unsettled = True

    def settle(self) -> None:
        """Return once all changes of the rights hold.

        A real broker and its controller hear of them one after the other, but in the same order:
        when a later one is seen, the earlier ones hold everywhere.
        """
        self._unsettled = False
        for _ in range(2):
            self._dummies += 1
            name = f"{self.name}-{self._dummies}"
            allow = (AclOperation.READ, AclPermissionType.ALLOW)
            self._create(AclCreation(GROUP, name, PatternType.LITERAL, "User:nobody", "*", *allow))
            wanted = DescribeAclsRequest(GROUP, name, PatternType.LITERAL, None, None, ANY, ANY)
            wait_until(partial(self._finds, wanted), what=f"{name} is seen")

    def _finds(self, wanted: DescribeAclsRequest) -> bool:
        return bool(self.quietly(wanted, 3, "admin").resources)

    def _create(self, creation: AclCreation) -> None:
        created = self.quietly(CreateAclsRequest([creation]), 3, "admin")
        assert created.results[0].error_code == 0, created

    # -- what there is -----------------------------------------------------------------------------

    def topic(self, suffix: str = "", partitions: int = 1) -> str:
        """A topic of the case's own, made by the administrator; its name."""
        name = f"{self.name}{suffix}"
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        self.quietly(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7, "admin")
        self.topic_id(name)
        for index in range(partitions):
            self.without_error(
                list_offsets(name, -1, partition=index),
                7,
                lambda answer: answer.topics[0].partitions[0].error_code,
            )
        self._wait_for_group_coordinator(name)
        return name

    def _wait_for_group_coordinator(self, topic: str) -> None:
        """Return once group coordinators know of a topic, a moment after clients do."""
        group = f"{topic}-probe"
        self.coordinator(group)
        join = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="probe",
            member_epoch=0,
            rebalance_timeout_ms=30_000,
            subscribed_topic_names=[topic],
            topic_partitions=[],
        )
        leave = ConsumerGroupHeartbeatRequest(group_id=group, member_id="probe", member_epoch=-1)

        def is_assigned() -> bool:
            answer = self.quietly(join, 1, "admin")
            self.quietly(leave, 1, "admin")
            self.quietly(DeleteGroupsRequest(groups_names=[group]), 2, "admin")
            return bool(answer.assignment.topic_partitions)

        wait_until(is_assigned, what=f"{topic} at the group coordinator")

    def topic_id(self, name: str) -> bytes:
        """The id of a topic, once it has leaders."""
        request = MetadataRequest([MetadataRequestTopic(name=name)], False)
        answer = self.without_error(
            request,
            12,
            lambda answer: (
                answer.topics[0].error_code
                or any(p.leader_id < 0 for p in answer.topics[0].partitions)
            ),
        )
        return bytes(answer.topics[0].topic_id)

    def coordinator(self, key: str, key_type: int = 0) -> None:
        """Wait until the coordinator of a group or transactional id is there and has loaded."""
        find = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        self.without_error(find, 4, lambda answer: answer.coordinators[0].error_code)
        if key_type == 0:
            probe = DescribeGroupsRequest(groups=[key])
            self.without_error(probe, 5, lambda answer: answer.groups[0].error_code)

    def without_error(self, message: Any, version: int, error: Callable[[Any], object]) -> Any:
        """Ask as the administrator until `error` of the answer is 0; the answer."""
        answers: list[Any] = []

        def right() -> bool:
            answers[:] = [self.quietly(message, version, "admin")]
            return not error(answers[0])

        wait_until(right, what=f"{self.name}: {type(message).__name__}")
        return answers[0]
