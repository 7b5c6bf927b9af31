"""A cluster as a server: it listens, reads the clock and writes files. The layers below do not.

Nouns: the *cluster server* owns a cluster, its clock and a socket server for each broker. `network`
moves requests and responses, `security` adds TLS and SASL to listeners, `storage` keeps clusters in
directories, and `clock` turns the trio run's time into the cluster's.
"""
