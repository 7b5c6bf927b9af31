"""A whole cluster with clients and faults, simulated from one number.

Nouns: a *plan* says everything about one simulation; a *seed* makes a plan. A *step* is something
that is done to the cluster at a time of the plan. A *script* is what a client does. A *law* is what
must hold whatever happens; where it does not, there is a *violation*.
"""
