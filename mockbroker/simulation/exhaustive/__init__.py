"""Every interleaving of a machine's events, to a depth.

A *world* is one of the project's state machines with the clients, the log and the clock around it.
It knows the *events* that may come next, takes one in, and checks the *invariants* that must hold
in each state and on each transition. The *explorer* goes through all sequences of events breadth
first. Two worlds with the same *key* are one state: what followed from the first is not looked at
again from the second. So the first violation that is found has a shortest *counterexample*.
"""
