"""What a broker keeps of its clients' Fetches.

A *fetch session* has the partitions that a client need not name again (KIP-227). A *fetch position*
is the offset that a client has fetched last.
"""
