"""What a cluster looks like at one moment, as plain structs: for people, for tests, for JSON.

Nothing here changes anything or creates a coordinator that is not there. Times are in ms since the
epoch on the cluster's clock; -1 stands for none, as in Kafka.
"""
