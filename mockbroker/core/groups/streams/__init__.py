"""Streams groups (KIP-1071): the broker assigns the tasks of a Kafka Streams application.

Nouns: a *topology* is the application's graph of processors; it consists of subtopologies, each
with source topics, repartition topics and changelog topics. A *task* is a subtopology and a
partition. It is active on one member; on others it is a *standby task*, a copy of its state, or a
warm-up. A process is an instance of the application; each of its threads is a member. The
configured topology has the partition counts of the internal topics, and so the number of tasks. It
is ready, and its epoch validated, when all its topics exist with the right partition counts.

Source: the package org.apache.kafka.coordinator.group.streams.
"""
