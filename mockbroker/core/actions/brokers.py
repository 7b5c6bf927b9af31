"""Actions on brokers: their processes, their registrations, their log directories.

What follows from them (a follower that catches up, a session that expires) takes its course on the
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

# What fits into every message that names a broker.
NODE_ID_MAX = 2**31 - 1
RACK_CHARS_MAX = 1_000


class Node(msgspec.Struct, frozen=True):
    """One broker."""

    SHORT: ClassVar[str] = "node"

    node: int


class StopBroker(msgspec.Struct, frozen=True):
    """One broker; `controlled` moves its leaders first, `unclean` is a kill, and `power_loss` takes
    with it what was not flushed. The controller notices a kill after `fence_after`; without it at
    once, or with `mockbroker.failure.detection=session` after `broker.session.timeout.ms`.
    """

    SHORT: ClassVar[str] = "node"

    node: int
    how: Literal["controlled", "unclean", "power_loss"] = "controlled"
    fence_after_ms: Ms | None = msgspec.field(default=None, name="fence_after")

    def __post_init__(self) -> None:
        if self.how == POWER_LOSS and self.fence_after_ms is not None:
            raise ValueError("a broker that loses its power is fenced at once")


class StartBroker(msgspec.Struct, frozen=True):
    """A broker that is stopped; with `new_port` its clients have to find it anew."""

    SHORT: ClassVar[str] = "node"

    node: int
    new_port: bool = False


class PauseBroker(msgspec.Struct, frozen=True):
    """One broker, and when it is fenced; without a time after `broker.session.timeout.ms`."""

    SHORT: ClassVar[str] = "node"

    node: int
    fence_after_ms: Ms | None = msgspec.field(default=None, name="fence_after")


class BrokerRack(msgspec.Struct, frozen=True):
    """One broker, and the rack it stands in, if any."""

    SHORT: ClassVar[str] = "node"

    node: int
    rack: str | None = None

    def __post_init__(self) -> None:
        if self.rack is not None and len(self.rack) > RACK_CHARS_MAX:
            raise ValueError(f"a rack's name has at most {RACK_CHARS_MAX} characters")


class FailLogDir(msgspec.Struct, frozen=True):
    """A log directory of a broker; its first one that is alive where no `path` is given."""

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
        """Start a stopped broker, with its logs as they were, on the ports it had or on new ones.

        It registers with the controller, also where its registration was removed.
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
        """Suspend a broker's process: it accepts connections and never answers, as after SIGSTOP.

        The controller fences it when its session has expired.
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
        """Let a paused broker go on; it serves what clients sent meanwhile."""
        broker = find_broker(cluster, wanted.node)
        after(wanted.node, broker.state, ProcessEvent.RESUME)
        cluster.controller.resume(broker)

    @action(BrokerRack)
    @staticmethod
    def add_broker(cluster: ClusterState, wanted: BrokerRack) -> None:
        """Let a new broker join, on free ports or on the next ones after the last broker's.

        It holds nothing until partitions are created on it or moved to it.
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
        """Stop a broker, if it is not stopped, and remove its registration.

        Partitions keep it among their replicas, offline, until they are reassigned.
        """
        cluster.controller.remove(find_broker(cluster, wanted.node))

    @action(BrokerRack)
    @staticmethod
    def set_rack(cluster: ClusterState, wanted: BrokerRack) -> None:
        """Put a broker into another rack; Kafka needs a restart for it."""
        find_broker(cluster, wanted.node).rack = wanted.rack
        cluster.metadata.changed()

    @action(FailLogDir)
    @staticmethod
    def fail_log_dir(cluster: ClusterState, wanted: FailLogDir) -> None:
        """Let a broker lose one of its log directories.

        The replicas there answer KAFKA_STORAGE_ERROR until the broker is stopped and started. A
        broker that loses its last directory dies.
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
    """A broker's process, registered or not. Raises ActionError, which names those there are."""
    broker = cluster.processes.get(node_id)
    if broker is None:
        known = ", ".join(map(str, cluster.processes))
        raise ActionError(f"there is no broker {node_id}; there are: {known or 'none'}")
    return broker
