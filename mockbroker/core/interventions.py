"""What people, tests and rules may do to a cluster: the actions that clients cannot ask for.

Each function is a method of `Cluster` under the same name. An action is carried out at once, in the
cluster's thread, and told as an event; what follows from it (a follower that catches up, a session
that expires) takes its course on the cluster's clock. Raises ActionError, which says what stands in
the way, and then nothing has changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mockbroker.core.broker import Broker, BrokerSpec
from mockbroker.core.broker_life import Step, after
from mockbroker.core.controller import CONTROLLED, POWER_LOSS, UNCLEAN
from mockbroker.core.errors import ActionError
from mockbroker.core.events import NetworkChanged
from mockbroker.core.partition_interventions import move_leader
from mockbroker.core.replication.network import links_between
from mockbroker.core.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.partition import Partition

# What fits into every message that names a broker.
NODE_ID_MAX = 2**31 - 1
RACK_CHARS_MAX = 1_000


def stop_broker(
    cluster: Cluster, node_id: int, how: str = CONTROLLED, fence_after_ms: int | None = None
) -> None:
    """Stop a broker: "controlled", so that its leaders move first, "unclean", as a kill does, or
    by "power_loss", which takes with it what was not flushed.

    After an unclean stop the controller notices at once, or after `fence_after_ms`; a real one
    takes `broker.session.timeout.ms`.
    """
    if how not in (CONTROLLED, UNCLEAN, POWER_LOSS):
        known = f"{CONTROLLED!r}, {UNCLEAN!r} or {POWER_LOSS!r}"
        raise ActionError(f"a broker is stopped {known}, not {how!r}")
    if how == POWER_LOSS and fence_after_ms is not None:
        raise ActionError("a broker that loses its power is fenced at once")
    if fence_after_ms is not None and fence_after_ms < 0:
        raise ActionError(f"fence_after_ms is a time from now on, not {fence_after_ms}")
    broker = _broker(cluster, node_id)
    after(node_id, broker.state, Step.STOP)
    cluster.controller.stop(broker, how, fence_after_ms or 0)


def start_broker(cluster: Cluster, node_id: int, *, new_port: bool = False) -> None:
    """Start a stopped broker, with its logs as they were, on the ports it had or on new ones.

    It registers, also where its registration was taken away.
    """
    broker = _broker(cluster, node_id)
    after(node_id, broker.state, Step.START)
    if not cluster.controller.reaches(node_id):
        raise ActionError(f"broker {node_id} cannot start: its way to the controller is cut")
    if new_port:
        broker.endpoints.clear()
    cluster.controller.start(broker)


def pause_broker(cluster: Cluster, node_id: int, fence_after_ms: int | None = None) -> None:
    """Let a broker's process stand still: it accepts connections and never answers.

    It is fenced when its session is over: after `broker.session.timeout.ms` unless told otherwise.
    """
    broker = _broker(cluster, node_id)
    after(node_id, broker.state, Step.PAUSE)
    if fence_after_ms is None:
        fence_after_ms = cluster.config_int("broker.session.timeout.ms")
    cluster.controller.pause(broker, fence_after_ms)


def resume_broker(cluster: Cluster, node_id: int) -> None:
    """Let a paused broker go on where it stood."""
    broker = _broker(cluster, node_id)
    after(node_id, broker.state, Step.RESUME)
    cluster.controller.resume(broker)


def add_broker(cluster: Cluster, node_id: int, rack: str | None = None) -> None:
    """Let a new broker join. It holds nothing until partitions are created on it or moved to it."""
    if node_id in cluster.processes and node_id not in cluster.brokers:
        raise ActionError(
            f"there is a broker {node_id} already; it is not registered, and is when it is "
            "stopped and started"
        )
    if node_id in cluster.processes:
        raise ActionError(f"there is a broker {node_id} already")
    if not 0 <= node_id <= NODE_ID_MAX:
        raise ActionError(f"{node_id} cannot be a broker's id")
    if rack is not None and len(rack) > RACK_CHARS_MAX:
        raise ActionError(f"a rack's name has at most {RACK_CHARS_MAX} characters")
    broker = Broker(cluster, BrokerSpec(node_id, rack), 0)
    cluster.controller.add(broker)


def remove_broker(cluster: Cluster, node_id: int) -> None:
    """Stop a broker, if it is not stopped, and take its registration away.

    Partitions keep it among their replicas, offline, until they are reassigned.
    """
    cluster.controller.remove(_broker(cluster, node_id))


def set_rack(cluster: Cluster, node_id: int, rack: str | None) -> None:
    """Say that a broker stands in another rack; Kafka would want a restart for it."""
    _broker(cluster, node_id).rack = rack
    cluster.metadata_changed()


def fail_log_dir(cluster: Cluster, node_id: int, path: str | None = None) -> None:
    """Let a broker lose one of its log directories, the first one unless told which.

    The replicas there answer KAFKA_STORAGE_ERROR until the broker is stopped and started. A broker
    that loses its last directory dies.
    """
    broker = _broker(cluster, node_id)
    log_dirs = broker.log_dirs
    alive = [each for each in log_dirs.paths if each not in log_dirs.failed]
    if path is None and alive:
        path = alive[0]
    if path is None or path not in alive:
        raise ActionError(f"broker {node_id} has no live log directory {path!r}; it has {alive}")
    after(node_id, broker.state, Step.FAIL_LOG_DIR)
    cluster.controller.fail_log_dir(broker, path)


# -- coordinators ----------------------------------------------------------------------------------


def move_coordinator(cluster: Cluster, key: str, node_id: int, kind: str = "group") -> None:
    """Let another broker coordinate a group, or with kind "transaction" a transactional id.

    It has to be in sync on the partition of the internal topic that the key belongs to; all keys
    of that partition move.
    """
    partition = _coordinator_partition(cluster, key, kind)
    move_leader(cluster, partition.topic.name, partition.index, node_id)


def unload_coordinator(cluster: Cluster, key: str, load_ms: int = 0, kind: str = "group") -> None:
    """Let the coordinator of a group or transactional id forget what it knows and read its log.

    That takes `load_ms`, in which clients get COORDINATOR_LOAD_IN_PROGRESS.
    """
    partition = _coordinator_partition(cluster, key, kind)
    leader = cluster.brokers.get(partition.leader_id)
    if leader is None:
        raise ActionError(f"{partition.topic.name}-{partition.index} has no leader")
    (leader.groups if kind == GROUP else leader.transactions).reload(partition, load_ms)


GROUP = "group"
COORDINATOR_TOPICS = {GROUP: GROUP_METADATA_TOPIC, "transaction": TRANSACTION_STATE_TOPIC}


def _coordinator_partition(cluster: Cluster, key: str, kind: str) -> Partition:
    topic = COORDINATOR_TOPICS.get(kind)
    if topic is None:
        raise ActionError(f"there are coordinators of {sorted(COORDINATOR_TOPICS)}, not {kind!r}")
    partition = cluster.partition(topic, cluster.find_coordinator_partition(key, topic))
    if partition is None:
        raise ActionError(f"{key!r} has no coordinator yet: there is no topic {topic}")
    return partition


# -- the network between brokers -------------------------------------------------------------------

Nodes = int | Iterable[int]


def cut_network(
    cluster: Cluster,
    from_: Nodes,
    to: Nodes | None = None,
    *,
    both_ways: bool = True,
    fence_after_ms: int | None = None,
) -> None:
    """Cut the links between some brokers and others, or all others.

    Followers on the other side lag and leave the ISR. Brokers that no longer reach the controller
    are fenced, at once or after `fence_after_ms`, and go on with the metadata that they have.
    Clients reach every broker as before.
    """
    left, right = _sides(cluster, from_, to)
    cluster.replication.network.cut(links_between(left, right, both_ways=both_ways))
    _tell_network(cluster, "cut", left, right)
    cluster.controller.links_changed(fence_after_ms or 0)


def delay_network(
    cluster: Cluster, from_: Nodes, to: Nodes | None = None, *, by_ms: int, both_ways: bool = True
) -> None:
    """Let messages between some brokers and others, or all others, take `by_ms`; 0 for none."""
    if by_ms < 0:
        raise ActionError(f"by_ms is a time that messages take, not {by_ms}")
    left, right = _sides(cluster, from_, to)
    cluster.replication.network.delay(links_between(left, right, both_ways=both_ways), by_ms)
    _tell_network(cluster, "delayed", left, right, by_ms)
    cluster.replication.links_changed()


def heal_network(cluster: Cluster, from_: Nodes | None = None, to: Nodes | None = None) -> None:
    """Bring links up again, and take away their delay: those between some brokers, or all."""
    network = cluster.replication.network
    if from_ is None:
        left, right = sorted(cluster.processes), sorted(cluster.processes)
        network.heal()
    else:
        left, right = _sides(cluster, from_, to)
        network.heal(links_between(left, right, both_ways=True))
    _tell_network(cluster, "healed", left, right)
    cluster.controller.links_changed(0)


def _sides(cluster: Cluster, from_: Nodes, to: Nodes | None) -> tuple[list[int], list[int]]:
    left = sorted({from_} if isinstance(from_, int) else set(from_))
    if to is None:
        right = sorted(set(cluster.processes) - set(left))
    else:
        right = sorted({to} if isinstance(to, int) else set(to))
    for node_id in (*left, *right):
        _broker(cluster, node_id)
    if not left or not right:
        raise ActionError("there is no broker on one side of the cut")
    return left, right


def _tell_network(
    cluster: Cluster, change: str, left: list[int], right: list[int], delay_ms: int = 0
) -> None:
    now_ms = cluster.now_ms()
    cluster.tell(NetworkChanged(now_ms, change, tuple(left), tuple(right), delay_ms))


def _broker(cluster: Cluster, node_id: int) -> Broker:
    broker = cluster.processes.get(node_id)
    if broker is None:
        known = ", ".join(map(str, cluster.processes))
        raise ActionError(f"there is no broker {node_id}; there are: {known or 'none'}")
    return broker
