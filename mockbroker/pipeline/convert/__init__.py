"""From notes to tables.

Nouns: an *exchange* is a request, opened, with what followed from it until it was answered or never
will be. A *part* makes the tables of one subject; it is told of exchanges and facts in the order of
the journal. The *world* is what several parts have to know: topics and their ids, leaders, clients.
"""
