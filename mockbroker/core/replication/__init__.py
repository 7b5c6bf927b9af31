"""Replication: followers, leaders and their elections, and the network between brokers."""
