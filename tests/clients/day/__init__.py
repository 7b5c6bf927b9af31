"""A day in the life of a cluster, and what becomes of every record.

The nouns: a *writer* and a *reader* are a client of one library in a thread of its own, a *member*
is a reader that belongs to a group. The *ledger* is told what writers were told and what readers
got; at the end it says what became of each record, and whether that is the *fate* that Kafka's
rules give it.
"""
