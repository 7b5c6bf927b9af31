"""A model checker: all interleavings of a state machine's events, to a depth.

An *explored world* is one of the project's state machines with its clients, log and clock. It lists
the possible next *events*, applies one, and checks *invariants* in each state and on each
transition. The *explorer* visits all sequences of events, breadth first. Worlds with equal *keys*
are one state, which is expanded once. The first violation therefore has a shortest
*counterexample*.
"""
