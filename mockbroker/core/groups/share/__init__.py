"""Share groups (KIP-932): membership, assignment, and the share partitions of a group.

Members of a *share group* consume the same partitions together; there is no ownership to revoke. A
*share partition* is a topic partition with the state of one group: start offset and deliveries. The
share coordinator keeps that state. The group coordinator only notes which share partitions are
initializing, initialized or deleting (`partitions`), and assigns the initialized ones.

Source: the package org.apache.kafka.coordinator.group.modern.share, GroupMetadataManager.
"""
