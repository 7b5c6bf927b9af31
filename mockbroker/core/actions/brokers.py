"""Actions on brokers: their processes, their registrations, their log directories.

The consequences, such as a follower that catches up or a session that expires, happen on the
cluster's clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec

from mockbroker.core.actions.registry import action
from mockbroker.core.brokers.broker import Broker, BrokerSpec
from mockbroker.core.brokers.broker_life import ProcessEvent, after
from mockbroker.core.brokers.controller import POWER_LOSS
from mockbroker.core.errors import ActionError
from mockbroker.core.validation import Ms

if TYPE_CHECKING:
    from mockbroker.core.cluster_state import ClusterState

# The largest id that all messages can hold.
NODE_ID_MAX = 2**31 - 1
RACK_CHARS_MAX = 1_000


class Node(msgspec.Struct, frozen=True):
    """One broker."""

    SHORT: ClassVar[str] = "node"

    node: int


class StopBroker(msgspec.Struct, frozen=True):
    """One broker. `controlled` moves its leaders first, `unclean` kills it, and `power_loss` also
    loses the records that were not flushed. The controller fences a killed broker after
    `fence_after`; without it at once, or with `mockbroker.failure.detection=session` after
    `broker.session.timeout.ms`.
    """

    SHORT: ClassVar[str] = "node"

    node: int
    how: Literal["controlled", "unclean", "power_loss"] = "controlled"
    fence_after_ms: Ms | None = msgspec.field(default=None, name="fence_after")

    def __post_init__(self) -> None:
        if self.how == POWER_LOSS and self.fence_after_ms is not None:
            raise ValueError("a broker that loses its power is fenced at once")


class StartBroker(msgspec.Struct, frozen=True):
    """A stopped broker; with `new_port` it listens on other ports."""

    SHORT: ClassVar[str] = "node"

    node: int
    new_port: bool = False


class PauseBroker(msgspec.Struct, frozen=True):
    """One broker; it is fenced after `fence_after`, or after `broker.session.timeout.ms`."""

    SHORT: ClassVar[str] = "node"

    node: int
    fence_after_ms: Ms | None = msgspec.field(default=None, name="fence_after")


class BrokerRack(msgspec.Struct, frozen=True):
    """One broker and its rack, if it has one."""

    SHORT: ClassVar[str] = "node"

    node: int
    rack: str | None = None

    def __post_init__(self) -> None:
        if self.rack is not None and len(self.rack) > RACK_CHARS_MAX:
            raise ValueError(f"a rack's name has at most {RACK_CHARS_MAX} characters")


class FailLogDir(msgspec.Struct, frozen=True):
    """A log directory of a broker; without `path` its first one that has not failed."""

    SHORT: ClassVar[str] = "node"

    node: int
    path: str | None = None


class BrokerActions:
    """Actions on brokers."""

    @action(StopBroker)
    @staticmethod
    def stop_broker(cluster: ClusterState, wanted: StopBroker) -> None:
        """Stop a broker's process."""
        broker = find_broker(cluster, wanted.node)
        after(wanted.node, broker.state, ProcessEvent.STOP)
        cluster.controller.stop(broker, wanted.how, wanted.fence_after_ms)

    @action(StartBroker)
    @staticmethod
    def start_broker(cluster: ClusterState, wanted: StartBroker) -> None:
        """Start a stopped broker with its logs, on its former ports or on new ones.

        It registers with the controller, also if its registration was removed.
        """
        broker = find_broker(cluster, wanted.node)
        after(wanted.node, broker.state, ProcessEvent.START)
        if not cluster.controller.reaches(wanted.node):
            raise ActionError(
                f"broker {wanted.node} cannot start: its way to the controller is cut"
            )
        if wanted.new_port:
            broker.endpoints.clear()
        cluster.controller.start(broker)

    @action(PauseBroker)
    @staticmethod
    def pause_broker(cluster: ClusterState, wanted: PauseBroker) -> None:
        """Suspend a broker's process as SIGSTOP does: it accepts connections and does not answer.

        The controller fences it when its session expires.
        """
        broker = find_broker(cluster, wanted.node)
        after(wanted.node, broker.state, ProcessEvent.PAUSE)
        fence_after_ms = wanted.fence_after_ms
        if fence_after_ms is None:
            fence_after_ms = cluster.config_int("broker.session.timeout.ms")
        cluster.controller.pause(broker, fence_after_ms)

    @action(Node)
    @staticmethod
    def resume_broker(cluster: ClusterState, wanted: Node) -> None:
        """Resume a paused broker. It handles the requests that arrived meanwhile."""
        broker = find_broker(cluster, wanted.node)
        after(wanted.node, broker.state, ProcessEvent.RESUME)
        cluster.controller.resume(broker)

    @action(BrokerRack)
    @staticmethod
    def add_broker(cluster: ClusterState, wanted: BrokerRack) -> None:
        """Add a broker, on free ports or on the next ports after the last broker's.

        It has no replica until partitions are created on it or reassigned to it.
        """
        node_id = wanted.node
        if node_id in cluster.processes and node_id not in cluster.brokers:
            raise ActionError(
                f"there is a broker {node_id} already; it is not registered, and is when it is "
                "stopped and started"
            )
        if node_id in cluster.processes:
            raise ActionError(f"there is a broker {node_id} already")
        if not 0 <= node_id <= NODE_ID_MAX:
            raise ActionError(f"{node_id} cannot be a broker's id")
        cluster.controller.add(cluster.new_broker(BrokerSpec(node_id, wanted.rack), 0))

    @action(Node)
    @staticmethod
    def remove_broker(cluster: ClusterState, wanted: Node) -> None:
        """Stop a broker, unless it is stopped, and remove its registration.

        Its replicas are offline until their partitions are reassigned. Cuts and delays of its links
        end.
        """
        cluster.controller.remove(find_broker(cluster, wanted.node))

    @action(BrokerRack)
    @staticmethod
    def set_rack(cluster: ClusterState, wanted: BrokerRack) -> None:
        """Set the rack of a broker. In Kafka this requires a restart."""
        find_broker(cluster, wanted.node).rack = wanted.rack
        cluster.metadata.changed()

    @action(FailLogDir)
    @staticmethod
    def fail_log_dir(cluster: ClusterState, wanted: FailLogDir) -> None:
        """Fail one of a broker's log directories.

        Requests for its replicas get KAFKA_STORAGE_ERROR until the broker is restarted. A broker
        stops when its last log directory fails.
        """
        broker = find_broker(cluster, wanted.node)
        log_dirs, path = broker.log_dirs, wanted.path
        alive = [each for each in log_dirs.paths if each not in log_dirs.failed]
        if path is None and alive:
            path = alive[0]
        if path is None or path not in alive:
            raise ActionError(
                f"broker {wanted.node} has no live log directory {path!r}; it has {alive}"
            )
        after(wanted.node, broker.state, ProcessEvent.FAIL_LOG_DIR)
        cluster.controller.fail_log_dir(broker, path)


def find_broker(cluster: ClusterState, node_id: int) -> Broker:
    """A broker, registered or not. Raises ActionError with the known ids if there is none."""
    broker = cluster.processes.get(node_id)
    if broker is None:
        known = ", ".join(map(str, cluster.processes))
        raise ActionError(f"there is no broker {node_id}; there are: {known or 'none'}")
    return broker
