"""Exchanges: a request and its answer, and the effects of rules on them.

An *exchange* is one request of a client until it is answered or never will be. Effects and their
journal entries depend on `base.Exchange` alone: not on a cluster, a socket or an event loop. A
connection is one implementation, the fast mode of simulations another.
"""
