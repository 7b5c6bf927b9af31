"""What groups of the newer protocols have in common: the coordinator assigns, members heartbeat.

Consumer groups (KIP-848), share groups (KIP-932) and streams groups (KIP-1071) build on it. Source:
the package org.apache.kafka.coordinator.group.modern.
"""
