"""Fetch sessions and fetch positions of a broker's clients.

A *fetch session* has the partitions that a client fetches incrementally (KIP-227). A *fetch
position* is the offset that a client has fetched last.
"""
