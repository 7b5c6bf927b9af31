"""From the entries of a spool to tables.

Nouns: an *exchange* is a request, decoded, with its consequences until it is answered or never will
be. A *part* makes the tables of one subject from exchanges and events, in the order of the journal.
The *cluster state* is what several parts need: topics and their ids, leaders, clients.
"""
