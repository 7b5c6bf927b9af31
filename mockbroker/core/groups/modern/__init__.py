"""What groups of the newer protocols have in common: the coordinator assigns, members heartbeat.

Consumer groups (KIP-848), share groups (KIP-932) and streams groups (KIP-1071) build on it. Nouns:
a *stored change* is one record of `__consumer_offsets` (`events`, `records`). A group (`group`)
is written by stored changes only. Its machine (`machine`) turns an event into effects;
`heartbeat` has the steps that all machines share. The *runner* (`runner`) of a shard passes events
to groups and carries out their effects.

Source: the package org.apache.kafka.coordinator.group.modern.
"""
