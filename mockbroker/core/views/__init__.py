"""Views of a cluster's current state, as plain structs for the command line, tests and JSON.

A view changes nothing and creates no coordinator. Times are in ms since the epoch on the cluster's
clock; -1 means none, as in Kafka.
"""
