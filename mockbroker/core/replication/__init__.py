"""Replicas that follow, leaders that are elected, and the network between brokers."""
