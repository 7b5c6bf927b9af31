"""The documentation of common configs for DescribeConfigs.

It is a module of its own because few clients request it.
"""

from __future__ import annotations

_TOPIC = {
    "cleanup.policy": "The policy for old segments: delete, compact, or both.",
    "compression.gzip.level": "Level of gzip, 1 to 9, or -1 for the library's default.",
    "compression.lz4.level": "Level of lz4, 1 to 17.",
    "compression.type": "Codec of stored batches; producer keeps the codec of the producer.",
    "compression.zstd.level": "Level of zstd, -131072 to 22.",
    "delete.retention.ms": "How long tombstones stay readable after compaction, in ms.",
    "file.delete.delay.ms": "How long a deleted segment stays on disk, in ms.",
    "flush.messages": "Number of records after which the log is flushed to disk.",
    "flush.ms": "Time after which the log is flushed to disk, in ms.",
    "follower.replication.throttled.replicas": "partition:broker pairs whose followers are slowed.",
    "index.interval.bytes": "Bytes of log between two entries of the offset index.",
    "leader.replication.throttled.replicas": "partition:broker pairs whose leaders are slowed.",
    "local.retention.bytes": "Bytes kept locally with tiered storage; -2 means retention.bytes.",
    "local.retention.ms": "Time kept locally with tiered storage, in ms; -2 means retention.ms.",
    "max.compaction.lag.ms": "Longest time a record stays out of compaction, in ms.",
    "max.message.bytes": "Largest batch that a broker accepts, in bytes.",
    "message.timestamp.after.max.ms": "How far ahead of the broker a timestamp may be, in ms.",
    "message.timestamp.before.max.ms": "How far behind the broker a timestamp may be, in ms.",
    "message.timestamp.type": "Source of timestamps: CreateTime or LogAppendTime.",
    "min.cleanable.dirty.ratio": "Share of the log not yet compacted that starts a compaction.",
    "min.compaction.lag.ms": "Shortest time a record stays out of compaction, in ms.",
    "min.insync.replicas": "In-sync replicas that acks=all requires, at most the replica count.",
    "preallocate": "Whether new segment files are allocated at full size.",
    "remote.log.copy.disable": "Whether copying to tiered storage is stopped.",
    "remote.log.delete.on.disable": "Whether disabling tiered storage deletes the remote data.",
    "remote.storage.enable": "Whether the topic uses tiered storage.",
    "retention.bytes": "Size of a log above which old segments are deleted, in bytes; -1: none.",
    "retention.ms": "Age at which segments are deleted, in ms; -1: never.",
    "segment.bytes": "Size at which a segment is closed, in bytes.",
    "segment.index.bytes": "Size of the offset index of a segment, in bytes.",
    "segment.jitter.ms": "Random time subtracted from segment.ms, in ms.",
    "segment.ms": "Age at which a segment is closed, in ms.",
    "unclean.leader.election.enable": "Whether a replica outside the ISR may lead; loses records.",
}

_BROKER = {
    "advertised.listeners": "The addresses that clients use.",
    "auto.create.topics.enable": "Whether a Metadata request creates unknown topics.",
    "broker.id": "The node id, under its older name.",
    "broker.rack": "The rack of the broker, for placement and for follower fetching.",
    "connections.max.idle.ms": "Idle time after which a connection is closed, in ms.",
    "default.replication.factor": "Replicas of a topic that is created with -1.",
    "delete.topic.enable": "Whether topics can be deleted.",
    "fetch.max.bytes": "Most bytes of one fetch response.",
    "group.consumer.assignment.interval.ms": "Time between two assignments of a group, in ms.",
    "group.consumer.assignors": "Assignors of the consumer protocol, the first is the default.",
    "group.consumer.heartbeat.interval.ms": "Heartbeat interval of the consumer protocol, in ms.",
    "group.consumer.session.timeout.ms": "Session timeout of the consumer protocol, in ms.",
    "group.initial.rebalance.delay.ms": "How long a new group waits for more members, in ms.",
    "group.max.session.timeout.ms": "Longest session timeout of a member, in ms.",
    "group.max.size": "Most members of one classic group.",
    "group.min.session.timeout.ms": "Shortest session timeout of a member, in ms.",
    "listeners": "The addresses the broker listens on.",
    "log.retention.hours": "Age at which segments are deleted, in hours.",
    "log.retention.minutes": "Age at which segments are deleted, in minutes; before the hours.",
    "max.incremental.fetch.session.cache.slots": "Fetch sessions that a broker keeps.",
    "mockbroker.admin.body.bytes.max": "Bytes of an admin request's body, without records.",
    "mockbroker.admin.records.bytes.max": "Bytes of a body of records; of a file of lines, a line.",
    "mockbroker.admin.snapshots.max": "Snapshots that the admin server keeps.",
    "mockbroker.admin.streams.max": "Clients to which the admin server streams the journal.",
    "mockbroker.batch.decompressed.bytes.max": "Bytes of a batch when decompressed.",
    "mockbroker.batch.records.max": "Records of a batch, and headers; Java splits a larger one.",
    "mockbroker.fetch.session.partitions.max": "Partitions of a broker's fetch or share sessions.",
    "mockbroker.request.elements.max": "Elements of a request, all arrays counted.",
    "mockbroker.response.bytes.max": "Bytes of a response; a larger one closes the connection.",
    "mockbroker.response.elements.max": "Elements of a response that is made in one piece.",
    "mockbroker.streams.tasks.max": "Tasks of the topology of a streams group.",
    "node.id": "The id of this node.",
    "num.partitions": "Partitions of a topic that is created with -1.",
    "offset.metadata.max.bytes": "Most bytes of metadata of a committed offset.",
    "offsets.retention.minutes": "How long offsets outlive an empty group, in minutes.",
    "offsets.topic.num.partitions": "Partitions of __consumer_offsets.",
    "offsets.topic.replication.factor": "Replicas of __consumer_offsets.",
    "process.roles": "The roles of this process: broker, controller or both.",
    "producer.id.expiration.ms": "How long an idle producer's state is kept, in ms.",
    "replica.lag.time.max.ms": "How long a follower may lag before it leaves the ISR, in ms.",
    "socket.request.max.bytes": "Largest request that a broker reads, in bytes.",
    "transaction.max.timeout.ms": "Longest transaction timeout of a producer, in ms.",
    "transaction.state.log.min.isr": "min.insync.replicas of __transaction_state.",
    "transaction.state.log.num.partitions": "Partitions of __transaction_state.",
    "transaction.state.log.replication.factor": "Replicas of __transaction_state.",
    "transactional.id.expiration.ms": "How long an idle transactional id is kept, in ms.",
}


def documentation_of(name: str, *, topic: bool) -> str | None:
    """The documentation of a config, or None."""
    if topic:
        return _TOPIC.get(name)
    if name in _BROKER:
        return _BROKER[name]
    from mockbroker.core.configs.defs import TOPIC_SYNONYMS

    topic_config = next((t for t, names in TOPIC_SYNONYMS.items() if names[0] == name), None)
    return None if topic_config is None else _TOPIC[topic_config]
