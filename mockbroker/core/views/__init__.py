"""Views of a cluster's present state, as plain structs for the command line, tests and JSON.

Nothing here changes anything or creates a coordinator that is not there. Times are in ms since the
epoch on the cluster's clock; -1 stands for none, as in Kafka.
"""
