"""Share groups (KIP-932): the state of share partitions, and its way to the share coordinator.

A *share partition* is a topic's partition as one share group reads it. Its state is the share start
offset, and for each *state batch* a range of offsets with a delivery state and a delivery
count. The *share coordinator* of a share partition leads the partition of `__share_group_state` to
which `group:topicId:partition` hashes, and writes snapshots and updates of the state there. Brokers
reach it through their *persister*.

The state epoch increases with each initialization by the group coordinator. The leader epoch is
that of the topic's partition. A request with an older one of the two is fenced.
"""
