"""Converts the entries of a spool to tables.

Nouns: an *exchange* is a decoded request with its consequences, until its answer or its end without
one. A *part* makes the tables of one subject from exchanges and events, in the order of the
journal. The *cluster state* is shared by the parts: topics and their ids, leaders, clients.
"""
